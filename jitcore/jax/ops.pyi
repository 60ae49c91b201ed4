from jitcore.ops import *
