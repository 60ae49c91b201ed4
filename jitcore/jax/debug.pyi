from jitcore.debug import *
