from jitcore.experimental.sparse import *
