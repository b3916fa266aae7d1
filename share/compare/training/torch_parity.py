"""Both sides of the comparison step by step: PyTorch's gradients and losses, and how far off Lockstep's are.

Reads one JSON document, the case, from the file named on the command line, and prints the answer as another:
  weights    writes PyTorch's initial weights for `lockstep --init-from`, for each seed
  gradients  of step 1, for each seed: distance to a float64 computation, per tensor, of PyTorch's layouts and of
             Lockstep's file
  losses     of every step, per layout, for the first seed
Several ranks are computed one after another: each has its own batch, and its own batch normalization, as under
DistributedDataParallel; the loss is the mean over the ranks.
"""

import contextlib
import json
import sys

import h5py
import torch

from torch_models import loss_of, make_model, make_optimizer, read_split, torch_order

LAYOUTS = {
    "channels first": (torch.contiguous_format, True),
    "channels last": (torch.channels_last, True),
    "without oneDNN": (torch.contiguous_format, False),
}


def write_weights(case):
    for seed in case["seeds"]:
        torch.manual_seed(seed)
        with h5py.File(case["init"].format(seed=seed), "w") as file:
            for name, tensor in make_model(case["model"]).state_dict().items():
                file[name] = tensor.numpy()


def read_weights(path):
    with h5py.File(path) as file:
        return {name: torch.from_numpy(file[name][...]) for name in file}


class Peer:
    def __init__(self, case, seed, dtype, layout):
        self.case, self.seed = case, seed
        self.memory_format, self.has_onednn = LAYOUTS[layout]
        self.x, self.y = read_split(case["data"], "train", case["mean"], case["std"], dtype)
        self.model = make_model(case["model"])
        self.model.load_state_dict(read_weights(case["init"].format(seed=seed)))
        self.model = self.model.to(dtype)
        if self.x.ndim == 4:
            self.model = self.model.to(memory_format=self.memory_format)
        self.loss = loss_of(case["model"])

    def batches(self):
        return torch_order(len(self.x), self.seed, 0, self.case["ranks"], self.case["batch"])

    def compute_gradients(self, ids_of_ranks):
        self.model.zero_grad()
        total = 0.0
        context = contextlib.nullcontext() if self.has_onednn else torch.backends.mkldnn.flags(enabled=False)
        with context:
            for ids in ids_of_ranks:
                x = self.x[ids]
                if x.ndim == 4:
                    x = x.contiguous(memory_format=self.memory_format)
                loss = self.loss(self.model(x), self.y[ids]) / len(ids_of_ranks)
                loss.backward()
                total += loss.item()
        return total

    def first_gradients(self):
        loss = self.compute_gradients(next(self.batches()))
        return loss, {name: p.grad.detach().double().contiguous() for name, p in self.model.named_parameters()}

    def losses(self):
        optimizer = make_optimizer(self.case["optimizer"], self.model.parameters())
        losses = []
        for _, ids_of_ranks in zip(range(self.case["steps"]), self.batches()):
            losses.append(self.compute_gradients(ids_of_ranks))
            optimizer.step()
        return losses


def layouts_of(case):
    return LAYOUTS if case["model"] in ("mnist_cnn", "resnet18") else ("channels first", "without oneDNN")


def distances(gradients, exact):
    """Of each tensor, and of all together: the norm of the difference over the exact norm."""
    squares = {name: (gradients[name] - exact[name]).square().sum().item() for name in exact}
    norms = {name: exact[name].square().sum().item() for name in exact}
    result = {name: (squares[name] / norms[name]) ** 0.5 if norms[name] else squares[name] for name in exact}
    return result | {"all": (sum(squares.values()) / sum(norms.values())) ** 0.5}


def gradients(case, seed):
    """Lockstep's are read from the weights after one step of plain SGD: (before - after) / lr."""
    exact_loss, exact = Peer(case, seed, torch.float64, "channels first").first_gradients()
    found = {}
    for layout in layouts_of(case):
        loss, tensors = Peer(case, seed, torch.float32, layout).first_gradients()
        found[layout] = distances(tensors, exact) | {"loss": abs(loss / exact_loss - 1)}
    before, after = (read_weights(case[which].format(seed=seed)) for which in ("init", "stepped"))
    ours = {name: (before[name].double() - after[name].double()) / case["lr"] for name in exact}
    return found | {"Lockstep": distances(ours, exact) | {"loss": abs(case["losses"][str(seed)] / exact_loss - 1)}}


def main():
    with open(sys.argv[2]) as file:
        case = json.load(file)
    torch.set_num_threads(1)
    if sys.argv[1] == "weights":
        answer = write_weights(case)
    elif sys.argv[1] == "gradients":
        answer = [gradients(case, seed) for seed in case["seeds"]]
    else:
        answer = {layout: Peer(case, case["seeds"][0], torch.float32, layout).losses() for layout in layouts_of(case)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
