from jitcore.numpy.fft import *
