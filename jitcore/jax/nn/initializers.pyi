from jitcore.nn.initializers import *
