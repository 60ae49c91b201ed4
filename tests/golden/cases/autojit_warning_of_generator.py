"""The warning about a function that is not compiled at all."""

import warnings

from jitcore import AutojitWarning, autojit

warnings.simplefilter("error", AutojitWarning)


@autojit
def rows(x):
    yield x[0]
