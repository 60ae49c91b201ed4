from jitcore.scipy.optimize import *
