from jitcore.scipy.fft import *
