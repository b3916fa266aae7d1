"""What every golden run begins with, computed alike by golden.hpp: exact in float32, so no file has to carry it."""

import numpy as np

TENSORS = [48, 1, 34]
N_STEPS = 100
KEPT_STEPS = [1, 2, 10, 100]


class Uniform:
    """Multiples of 2^-24 in [-0.5, 0.5), from the linear congruential generator of Numerical Recipes."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) * 2.0**-24 - 0.5


def make_inputs():
    """Parameters [n] and gradients [step][n] as float32; magnitudes over 2^5, and every 13th without gradient."""
    uniform = Uniform(1)
    n = sum(TENSORS)
    parameters = np.array([2 * uniform.next() for _ in range(n)], np.float32)
    gradients = np.array(
        [[0 if i % 13 == 5 else uniform.next() * 2.0 ** -(i % 6) for i in range(n)] for _ in range(N_STEPS)], np.float32
    )
    return parameters, gradients


def rate_at(lr, step):
    """The learning rate of a step, 0 and up: falls, so that it is seen whether each step takes its own."""
    return lr * ((200 - step) / 200)


def write_case(file, name, settings):
    file.write(f"case {name}\n")
    for key, value in settings.items():
        file.write(f"set {key} {value}\n")


def write_values(file, name, step, values):
    """Nine digits tell float32 values apart."""
    file.write(f"{name} {step} {' '.join(f'{value:.9g}' for value in values)}\n")
