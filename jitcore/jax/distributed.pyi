from jitcore.distributed import *
