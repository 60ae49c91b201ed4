from jitcore.errors import *
