from jitcore.tree import *
