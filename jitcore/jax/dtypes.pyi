from jitcore.dtypes import *
