from jitcore.scipy.sparse.linalg import *
