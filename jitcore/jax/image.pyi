from jitcore.image import *
