from jitcore.scipy.ndimage import *
