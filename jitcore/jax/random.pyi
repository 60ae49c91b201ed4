from jitcore.random import *
