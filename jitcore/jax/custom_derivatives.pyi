from jitcore.custom_derivatives import *
