"""An attribute that is set for the first time on one side of a condition, and its use."""

from jitcore import jit


class Model:
    pass


def train(x):
    model = Model()
    if x > 0:
        model.weight = x
    return model.weight + 1


jit(train, rewrite=True)(1.0)
