from jitcore.numpy.linalg import *
