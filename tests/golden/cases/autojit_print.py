"""A function that prints to a file of its own kind."""

import numpy as np

from jitcore import autojit


class Log:
    def write(self, text):
        self.text = text


log = Log()


@autojit(strict=True)
def norm(x):
    total = np.sqrt((x * x).sum())
    print("norm", total, file=log)
    return x / total


norm(np.ones(3))
