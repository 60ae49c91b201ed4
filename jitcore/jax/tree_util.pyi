from jitcore.tree_util import *
