"""The warning that a function is not compiled, turned into an error."""

import logging
import warnings

import numpy as np

from jitcore import AutojitWarning, autojit

warnings.simplefilter("error", AutojitWarning)


@autojit
def norm(x):
    total = np.sqrt((x * x).sum())
    logging.debug("norm %s", total)
    return x / total


norm(np.ones(3))
