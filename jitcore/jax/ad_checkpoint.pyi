from jitcore.ad_checkpoint import *
