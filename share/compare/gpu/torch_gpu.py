#!/usr/bin/env python3
"""PyTorch's training steps on a fixed batch on a GPU, in one configuration. Prints JSON: the seconds of a step in each window.

Best practice throughout: channels last for images, cudnn.benchmark, TF32 in float32, fused optimizer, gradients set to None,
autocast to bfloat16, or to float16 with a GradScaler; the loss never read, the batch on the GPU. Exit code 77 without a GPU.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # leave the source folder as it was
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))  # torch_models.py

from works import IMAGE_MODELS, MODES, WORKS

N_WARMUP = 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=WORKS, metavar="WORK", required=True, help="one of: " + "; ".join(WORKS))
    parser.add_argument("--precision", choices=("bf16", "f16", "f32"), required=True)
    parser.add_argument("--mode", choices=MODES, required=True, help="of torch.compile, or none")
    parser.add_argument("--windows", type=int, default=7)
    return parser.parse_args()


def skip(reason):
    print(f"skipped: no GPU for PyTorch: {reason}")
    sys.exit(77)


def make_batch(torch, work, n_users, n_items):
    n = work.batch
    if work.model == "toy":
        return torch.rand(n, 20), torch.rand(n, 1)
    if work.model == "movielens":
        return torch.stack((torch.randint(n_users, (n,)), torch.randint(n_items, (n,))), 1), torch.rand(n) * 5
    n_channels = 1 if work.model == "mnist_cnn" else 3
    return torch.randn(n, n_channels, work.size, work.size), torch.randint(work.classes, (n,))


def make_step(torch, work, arguments):
    from torch_models import N_ITEMS, N_USERS, loss_of, make_model, make_optimizer

    x, y = (part.cuda() for part in make_batch(torch, work, N_USERS, N_ITEMS))
    model = make_model(work.model, work.classes, has_dropout=True).cuda()
    if work.model in IMAGE_MODELS:
        x = x.contiguous(memory_format=torch.channels_last)
        model = model.to(memory_format=torch.channels_last)
    # Adadelta has no fused form.
    options = {"foreach": True} if work.optimizer["optimizer"] == "adadelta" else {"fused": True}
    optimizer = make_optimizer(work.optimizer, model.parameters(), **options)
    if arguments.mode != "eager":
        model = torch.compile(model, mode=arguments.mode)
    loss_function = loss_of(work.model)
    dtype = torch.float16 if arguments.precision == "f16" else torch.bfloat16
    scaler = torch.amp.GradScaler("cuda", enabled=arguments.precision == "f16")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype, enabled=arguments.precision != "f32"):
            output = model(x)
        scaler.scale(loss_function(output.float(), y)).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def main():
    arguments = parse_arguments()
    try:
        import torch
    except ImportError as error:
        skip(str(error))
    if not torch.cuda.is_available():
        skip("torch.cuda.is_available() says no")
    work = WORKS[arguments.work]
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    start = time.perf_counter()
    step = make_step(torch, work, arguments)
    step()
    torch.cuda.synchronize()
    first_s = time.perf_counter() - start
    for _ in range(N_WARMUP - 1):
        step()
    windows = []
    for _ in range(arguments.windows):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(work.steps):
            step()
        torch.cuda.synchronize()
        windows.append((time.perf_counter() - begin) / work.steps)
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    print(json.dumps({"window_s": windows, "first_s": first_s, "gpu": torch.cuda.get_device_name(), **versions}))


if __name__ == "__main__":
    main()
