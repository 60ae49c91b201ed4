from jitcore.scipy.linalg import *
