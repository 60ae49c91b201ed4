from jitcore.test_util import *
