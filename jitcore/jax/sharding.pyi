from jitcore.sharding import *
