from jitcore.experimental.ode import *
