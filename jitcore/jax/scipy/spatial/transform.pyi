from jitcore.scipy.spatial.transform import *
