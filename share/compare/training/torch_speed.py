"""The peer's training steps on a fixed batch, in one configuration. One process per rank; rank 0 prints JSON.

Best practice throughout: gradients as views of DistributedDataParallel's buckets, no broadcast of buffers, gradients
set to None, loss never read, inputs ready in the layout of the model. With reshard_after_forward in the configuration,
FSDP2 takes the place of DistributedDataParallel.
"""

import argparse
import contextlib
import json
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from torch_models import N_ITEMS, N_USERS, Block, loss_of, make_model, make_optimizer

N_WARMUP = 5


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=json.loads, required=True, help="model, batch, size, classes, optimizer, bf16")
    parser.add_argument("--config", type=json.loads, required=True, help="channels_last, compile, optimizer's options")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--meet", help="file through which the ranks find each other")
    return parser.parse_args()


def make_batch(work):
    n = work["batch"]
    if work["model"] == "toy":
        return torch.rand(n, 20), torch.rand(n, 1)
    if work["model"] == "movielens":
        return torch.stack((torch.randint(N_USERS, (n,)), torch.randint(N_ITEMS, (n,))), 1), torch.rand(n) * 5
    n_channels = 1 if work["model"] == "mnist_cnn" else 3
    return torch.randn(n, n_channels, work["size"], work["size"]), torch.randint(work["classes"], (n,))


def shard(model, config):
    """FSDP2 as its documentation recommends: each block is gathered on its own, and what is left with the model."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard  # PyTorch 2.6 or newer

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks if config["compile"] else []:
        block.compile(dynamic=False)
    for module in [*blocks, model]:
        fully_shard(module, mesh=mesh, reshard_after_forward=config["reshard_after_forward"])


def main():
    arguments = parse_arguments()
    work, config, n_ranks = arguments.work, arguments.config, arguments.ranks
    start = time.perf_counter()
    torch.set_num_threads(1)
    torch.manual_seed(1 + arguments.rank)
    if n_ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{arguments.meet}", rank=arguments.rank, world_size=n_ranks)
    x, y = make_batch(work)
    model = make_model(work["model"], work["classes"], has_dropout=True)
    is_sharded = "reshard_after_forward" in config
    if config["channels_last"]:
        x = x.contiguous(memory_format=torch.channels_last)
        if not is_sharded:
            model = model.to(memory_format=torch.channels_last)
    if is_sharded:
        shard(model, config)
    optimizer = make_optimizer(work["optimizer"], model.parameters(), **config["options"])
    if n_ranks > 1 and not is_sharded:
        model = DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True, static_graph=True)
    if config["compile"] and not is_sharded:
        model = torch.compile(model)
    loss_function = loss_of(work["model"])
    cast = torch.autocast("cpu", torch.bfloat16) if work["bf16"] else contextlib.nullcontext()

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with cast:
            output = model(x)
        loss_function(output.float(), y).backward()
        optimizer.step()
        return time.perf_counter() - begin

    step()
    first_s = time.perf_counter() - start
    for _ in range(N_WARMUP - 1):
        step()
    times = sorted(step() for _ in range(arguments.steps))
    if n_ranks > 1:
        dist.barrier()
        dist.destroy_process_group()
    print(json.dumps({"step_s": times[len(times) // 2], "first_s": first_s}), flush=True)
    os._exit(0)  # gloo's threads now and then abort a process that ends in the usual way


if __name__ == "__main__":
    main()
