from jitcore.scipy.interpolate import *
