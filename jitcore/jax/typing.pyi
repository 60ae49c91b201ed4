from jitcore.typing import *
