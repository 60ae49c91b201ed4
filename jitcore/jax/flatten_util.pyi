from jitcore.flatten_util import *
