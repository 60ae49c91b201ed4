from jitcore.scipy.signal import *
