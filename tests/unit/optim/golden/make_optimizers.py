#!/usr/bin/env python3
"""Writes optimizers.txt: torch.optim on the CPU, tensor by tensor (foreach=False), float32.

PyTorch's square roots come from MKL, which is off by one unit in the last place for every fifth float32. Optimizers
with roots are therefore run twice: as PyTorch is, and, in exact_roots.txt, with roots rounded as IEEE 754 asks."""

import pathlib

import numpy as np
import torch
from inputs import KEPT_STEPS, N_STEPS, TENSORS, make_inputs, rate_at, write_case, write_values

STATES = {"momentum_buffer": "momentum"}  # PyTorch's names that are not ours

CASES = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd_decay": (torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.01}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "sgd_dampening": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    "sgd_nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}),
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "adam_decay": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    "adam_low_betas": (torch.optim.Adam, {"lr": 0.01, "betas": (0.3, 0.5), "eps": 1e-3}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01}),
    "adadelta": (torch.optim.Adadelta, {"lr": 1.0}),
    "adadelta_decay": (torch.optim.Adadelta, {"lr": 1.0, "weight_decay": 0.1, "rho": 0.95, "eps": 1e-4}),
    "sgd_segments": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "undecayed": 1}),
    "adamw_segments": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "undecayed": 1}),
    "sgd_clipped": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "max_norm": 0.5}),
}


def settings_of(kind, options):
    settings = {"kind": kind.__name__.lower(), **options}
    if "betas" in settings:
        settings["beta1"], settings["beta2"] = settings.pop("betas")
    return {key: int(value) if isinstance(value, bool) else value for key, value in settings.items()}


def run(file, kind, options):
    options = dict(options)
    undecayed = options.pop("undecayed", None)
    max_norm = options.pop("max_norm", None)
    parameters, gradients = make_inputs()
    tensors = [torch.nn.Parameter(t.clone()) for t in torch.from_numpy(parameters).split(TENSORS)]
    groups = [{"params": [t], **({"weight_decay": 0.0} if i == undecayed else {})} for i, t in enumerate(tensors)]
    optimizer = kind(groups, foreach=False, **options)

    for step in range(N_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(options["lr"], step)
        for tensor, gradient in zip(tensors, torch.from_numpy(gradients[step]).split(TENSORS)):
            tensor.grad = gradient.clone()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(tensors, max_norm, foreach=False)
        optimizer.step()
        if step + 1 in KEPT_STEPS:
            write_values(file, "parameters", step + 1, torch.cat(tensors).tolist())
    for name in optimizer.state[tensors[0]]:
        if name == "step" or optimizer.state[tensors[0]][name] is None:
            continue
        values = torch.cat([optimizer.state[t][name] for t in tensors]).tolist()
        write_values(file, STATES.get(name, name), N_STEPS, values)


def with_exact_roots():
    torch.Tensor.sqrt = lambda tensor: torch.from_numpy(np.sqrt(tensor.detach().numpy()))
    torch.Tensor.sqrt_ = lambda tensor: tensor.copy_(tensor.sqrt())


def write(file_name, cases):
    with open(pathlib.Path(__file__).parent / file_name, "w") as file:
        file.write(f"# by make_optimizers.py with PyTorch {torch.__version__.split('+')[0]}\n")
        for name, (kind, options) in cases.items():
            write_case(file, name, settings_of(kind, options))
            run(file, kind, options)


def main():
    write("optimizers.txt", CASES)
    with_exact_roots()
    write("exact_roots.txt", {name: case for name, case in CASES.items() if case[0] is not torch.optim.SGD})


if __name__ == "__main__":
    main()
