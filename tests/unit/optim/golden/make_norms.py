#!/usr/bin/env python3
"""Writes norms.txt: LARS (You, Gitman, Ginsburg 2017, algorithm 1), LAMB (You et al. 2019, algorithm 2) and Lion (Chen
et al. 2023, algorithm 2) in float64, straight from the papers' formulas; for LARS and LAMB, a tensor of norm 0, or whose
divisor is 0, has trust ratio 1."""

import pathlib

import numpy as np
from inputs import KEPT_STEPS, N_STEPS, TENSORS, make_inputs, rate_at, write_case, write_values

CASES = {
    "lars": {"kind": "lars", "lr": 5.0, "momentum": 0.9, "weight_decay": 5e-4, "trust": 0.001},
    "lars_strong": {"kind": "lars", "lr": 1.0, "momentum": 0.5, "weight_decay": 0.5, "trust": 0.02},
    "lars_segments": {"kind": "lars", "lr": 1.0, "momentum": 0.9, "weight_decay": 0.1, "trust": 0.01, "undecayed": 1},
    "lars_from_zero": {"kind": "lars", "lr": 0.5, "momentum": 0.9, "weight_decay": 5e-4, "trust": 0.01, "zeros": 1},
    "lamb": {"kind": "lamb", "lr": 0.01, "weight_decay": 0.01, "eps": 1e-6},
    "lamb_betas": {"kind": "lamb", "lr": 0.02, "weight_decay": 0.5, "beta1": 0.4, "beta2": 0.9, "eps": 1e-3},
    "lamb_segments": {"kind": "lamb", "lr": 0.01, "weight_decay": 0.1, "eps": 1e-6, "undecayed": 2},
    "lamb_from_zero": {"kind": "lamb", "lr": 0.01, "weight_decay": 0.01, "eps": 1e-6, "zeros": 1},
    "lion": {"kind": "lion", "lr": 0.001},
    "lion_decay": {"kind": "lion", "lr": 0.01, "weight_decay": 0.5, "beta1": 0.4, "beta2": 0.8},
    "lion_segments": {"kind": "lion", "lr": 0.01, "weight_decay": 1.0, "undecayed": 1},
}


def ratio(numerator, denominator):
    return numerator / denominator if numerator > 0 and denominator > 0 else 1.0


class Lars:
    def __init__(self, x, settings, decays):
        self.settings, self.decays = settings, decays
        self.state = {"momentum": np.zeros_like(x)}

    def step(self, x, g, lr, _):
        decay = self.settings["weight_decay"] if self.decays else 0.0
        norm, g_norm = np.linalg.norm(x), np.linalg.norm(g)
        adapts = self.decays and norm > 0 and g_norm > 0
        trust = self.settings["trust"] * norm / (g_norm + decay * norm) if adapts else 1.0
        v = self.state["momentum"]
        v[:] = self.settings["momentum"] * v + lr * trust * (g + decay * x)
        x -= v


class Lamb:
    def __init__(self, x, settings, decays):
        self.settings, self.decays = settings, decays
        self.state = {"exp_avg": np.zeros_like(x), "exp_avg_sq": np.zeros_like(x)}

    def step(self, x, g, lr, t):
        beta1, beta2 = self.settings.get("beta1", 0.9), self.settings.get("beta2", 0.999)
        decay = self.settings["weight_decay"] if self.decays else 0.0
        m, v = self.state["exp_avg"], self.state["exp_avg_sq"]
        m[:] = beta1 * m + (1 - beta1) * g
        v[:] = beta2 * v + (1 - beta2) * g * g
        update = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + self.settings["eps"]) + decay * x
        trust = ratio(np.linalg.norm(x), np.linalg.norm(update)) if self.decays else 1.0
        x -= lr * trust * update


class Lion:
    def __init__(self, x, settings, decays):
        self.settings, self.decays = settings, decays
        self.state = {"exp_avg": np.zeros_like(x)}

    def step(self, x, g, lr, _):
        beta1, beta2 = self.settings.get("beta1", 0.9), self.settings.get("beta2", 0.99)
        decay = self.settings.get("weight_decay", 0.0) if self.decays else 0.0
        m = self.state["exp_avg"]
        x -= lr * (np.sign(beta1 * m + (1 - beta1) * g) + decay * x)
        m[:] = beta2 * m + (1 - beta2) * g


def run(file, settings):
    parameters, gradients = (array.astype(np.float64) for array in make_inputs())
    ends = np.cumsum(TENSORS)[:-1]
    tensors = np.split(parameters, ends)
    if "zeros" in settings:
        tensors[settings["zeros"]][:] = 0
    kind = {"lars": Lars, "lamb": Lamb, "lion": Lion}[settings["kind"]]
    optimizers = [kind(x, settings, i != settings.get("undecayed")) for i, x in enumerate(tensors)]
    for step in range(N_STEPS):
        for optimizer, x, g in zip(optimizers, tensors, np.split(gradients[step], ends)):
            optimizer.step(x, g, rate_at(settings["lr"], step), step + 1)
        if step + 1 in KEPT_STEPS:
            write_values(file, "parameters", step + 1, np.concatenate(tensors))
    for name in optimizers[0].state:
        write_values(file, name, N_STEPS, np.concatenate([optimizer.state[name] for optimizer in optimizers]))


def main():
    with open(pathlib.Path(__file__).parent / "norms.txt", "w") as file:
        file.write("# by make_norms.py: float64, nine digits\n")
        for name, settings in CASES.items():
            write_case(file, name, settings)
            run(file, settings)


if __name__ == "__main__":
    main()
