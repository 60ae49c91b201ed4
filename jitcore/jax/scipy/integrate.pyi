from jitcore.scipy.integrate import *
