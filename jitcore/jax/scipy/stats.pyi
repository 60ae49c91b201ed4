from jitcore.scipy.stats import *
