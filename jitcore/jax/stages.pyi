from jitcore.stages import *
