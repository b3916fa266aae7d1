#!/usr/bin/env python3
"""Writes schedules.txt: learning rates of torch.optim.lr_scheduler. One scheduler step is `unit` samples."""

import pathlib
import warnings

import torch
from inputs import write_case
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    SequentialLR,
    StepLR,
)

UNIT = 60  # samples; of cases with a warm-up: a step, of others: an epoch


def warmed_up(optimizer, steps, factor):
    return LinearLR(optimizer, start_factor=factor, total_iters=steps)


def sequential(optimizer, steps, factor, then):
    return SequentialLR(optimizer, [warmed_up(optimizer, steps, factor), then], milestones=[steps])


# name: settings in steps of UNIT where they are samples, number of rates, scheduler
CASES = {
    "constant_warmup": ({"kind": "constant", "lr": 0.1, "warmup_samples": 5, "warmup_factor": 0.25}, 12,
                        lambda o: warmed_up(o, 5, 0.25)),
    "step": ({"kind": "step", "lr": 1.0, "gamma": 0.7, "step_samples": 1}, 15, lambda o: StepLR(o, 1, 0.7)),
    "step_30": ({"kind": "step", "lr": 0.1, "gamma": 0.1, "step_samples": 30}, 95, lambda o: StepLR(o, 30, 0.1)),
    "step_warmup": ({"kind": "step", "lr": 0.4, "gamma": 0.5, "step_samples": 4, "warmup_samples": 6,
                     "warmup_factor": 0.1}, 20, lambda o: ChainedScheduler([warmed_up(o, 6, 0.1), StepLR(o, 4, 0.5)])),
    "multistep": ({"kind": "multistep", "lr": 0.1, "gamma": 0.2, "milestones": [3, 7, 8]}, 12,
                  lambda o: MultiStepLR(o, [3, 7, 8], 0.2)),
    "multistep_warmup": ({"kind": "multistep", "lr": 0.1, "gamma": 0.2, "milestones": [6, 9], "warmup_samples": 4,
                          "warmup_factor": 0.01}, 12,
                         lambda o: ChainedScheduler([warmed_up(o, 4, 0.01), MultiStepLR(o, [6, 9], 0.2)])),
    "cosine": ({"kind": "cosine", "lr": 0.3, "total_samples": 20}, 21, lambda o: CosineAnnealingLR(o, 20)),
    "cosine_warmup": ({"kind": "cosine", "lr": 0.3, "min_lr": 0.02, "total_samples": 25, "warmup_samples": 5,
                       "warmup_factor": 0.5}, 26,
                      lambda o: sequential(o, 5, 0.5, CosineAnnealingLR(o, 20, eta_min=0.02))),
    "polynomial": ({"kind": "polynomial", "lr": 2.0, "power": 2.0, "total_samples": 10}, 15,
                   lambda o: PolynomialLR(o, total_iters=10, power=2.0)),
    "polynomial_warmup": ({"kind": "polynomial", "lr": 2.0, "power": 0.9, "total_samples": 14, "warmup_samples": 4,
                           "warmup_factor": 0.1}, 18,
                          lambda o: sequential(o, 4, 0.1, PolynomialLR(o, total_iters=10, power=0.9))),
}


def in_samples(key, value):
    if key == "milestones":
        return " ".join(str(steps * UNIT) for steps in value)
    return value * UNIT if key.endswith("_samples") else value


def main():
    warnings.simplefilter("ignore")  # SequentialLR steps its own schedulers in a way that PyTorch warns of
    with open(pathlib.Path(__file__).parent / "schedules.txt", "w") as file:
        file.write(f"# by make_schedules.py with PyTorch {torch.__version__.split('+')[0]}\n")
        for name, (settings, n_rates, make) in CASES.items():
            write_case(file, name, {key: in_samples(key, value) for key, value in settings.items()})
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings["lr"])
            scheduler = make(optimizer)
            for step in range(n_rates):
                file.write(f"lr {step * UNIT} {optimizer.param_groups[0]['lr']!r}\n")
                optimizer.step()
                scheduler.step()


if __name__ == "__main__":
    main()
