from jitcore.experimental.checkify import *
