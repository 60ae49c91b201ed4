from jitcore.lax.linalg import *
