from jitcore.experimental.jet import *
