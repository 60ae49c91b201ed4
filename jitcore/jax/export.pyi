from jitcore.export import *
