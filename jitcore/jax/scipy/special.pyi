from jitcore.scipy.special import *
