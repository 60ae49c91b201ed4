from jitcore.scipy.cluster.vq import *
