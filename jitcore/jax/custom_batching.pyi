from jitcore.custom_batching import *
