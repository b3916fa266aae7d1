#!/usr/bin/env python3
"""Writes what PyTorch and torchvision say about the cases of cases.cpp, in float64.

usage: make_golden.py <folder>

parameters.txt: model, parameter, shape. The parameters of the models that nn/graph/models.cpp lists.
layers.txt, models.txt: case, label, values. Of models, gradients and statistics are digests: sum of magnitudes, and sum
of elements weighted by value(777, i).
"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

X, TARGETS, IDS, CLASSES, DIGEST = 1000, 1001, 1002, 1003, 777


def mix(seed, n):
    """Sebastiano Vigna's splitmix64 of (seed, i) for i < n."""
    with np.errstate(over="ignore"):
        z = (np.uint64(seed) << np.uint64(32)) + np.arange(n, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def values(seed, *shape):
    """In [-1, 1)."""
    n = int(np.prod(shape))
    return torch.from_numpy((mix(seed, n) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1).reshape(shape)


def whole(seed, n, bound):
    return torch.from_numpy((mix(seed, n) % np.uint64(bound)).astype(np.int64))


def parameter_values(index, name, shape):
    u = values(index + 1, *shape)
    if len(shape) > 1:
        return u * np.sqrt(3 / np.prod(shape[1:]))
    return 1 + u / 4 if name.endswith("weight") else u / 4


def mask(x):
    """Which elements dropout keeps."""
    sample = torch.arange(x.shape[0])[:, None]
    element = torch.arange(x[0].numel())[None, :]
    return ((7 * sample + 13 * element) % 5 != 0).double().reshape(x.shape)


class MaskedDropout(nn.Module):
    def __init__(self, probability):
        super().__init__()
        self.probability = probability

    def forward(self, x):
        return x * mask(x) / (1 - self.probability) if self.training else x


class GroupedBatchNorm(nn.BatchNorm2d):
    """Statistics of `group` samples at a time; the running ones move towards their mean, weighted by samples."""

    group = 0

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        outputs, means, variances = [], 0, 0
        for part in x.split(self.group or len(x)):
            mean, variance = self.running_mean.clone(), self.running_var.clone()
            outputs.append(F.batch_norm(part, mean, variance, self.weight, self.bias, True, self.momentum, self.eps))
            means = means + mean * len(part) / len(x)
            variances = variances + variance * len(part) / len(x)
        self.running_mean.copy_(means)
        self.running_var.copy_(variances)
        return torch.cat(outputs)


class Flow(nn.Module):
    """Named layers in a row."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(5)
        self.fc1 = nn.Linear(5, 6)
        self.dropout = MaskedDropout(0.25)
        self.fc2 = nn.Linear(6, 5)
        self.fc3 = nn.Linear(5, 4, bias=False)

    def forward(self, x):
        return self.fc3(self.fc2(self.dropout(F.relu(self.fc1(self.ln(x))))) + x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(9, 5)
        self.ln = nn.LayerNorm(5)
        self.fc = nn.Linear(5, 5)

    def forward(self, ids):
        return F.linear(F.relu(self.fc(self.ln(self.wte(ids)))), self.wte.weight)


class Pool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.bn1 = GroupedBatchNorm(3)
        self.conv2 = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)) + x)
        y = self.conv2(y) + y
        return y.mean((2, 3))


class MnistNet(nn.Module):
    """pytorch/examples mnist, for images of any size; its log_softmax belongs to the loss."""

    def __init__(self, pixels):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = MaskedDropout(0.25)
        self.dropout2 = MaskedDropout(0.5)
        self.fc1 = nn.Linear(64 * ((pixels - 4) // 2) ** 2, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2)).flatten(1)
        return self.fc2(self.dropout2(F.relu(self.fc1(x))))


class MnistNll(MnistNet):
    """As the example writes it."""

    def forward(self, x):
        return F.log_softmax(super().forward(x), 1)


class NeuralRecSys(nn.Module):
    """The recommendation tutorial's, with its rule for the widths."""

    def __init__(self, n_users, n_items):
        super().__init__()
        widths = [min(600, round(1.6 * n**0.56)) for n in (n_users, n_items)]
        self.user_factors = nn.Embedding(n_users, widths[0])
        self.item_factors = nn.Embedding(n_items, widths[1])
        self.lin = nn.Linear(sum(widths), 1)

    def forward(self, ids):
        return self.lin(torch.cat([self.user_factors(ids[:, 0]), self.item_factors(ids[:, 1])], 1))


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Embedding(4, 3)
        self.right = nn.Embedding(5, 2)
        self.fc = nn.Linear(5, 1)

    def forward(self, ids):
        return self.fc(torch.cat([self.left(ids[:, 1]), self.right(ids[:, 0])], 1))


def resnet(name, n_outputs, cifar_stem=False):
    model = getattr(torchvision.models, name)(num_classes=n_outputs, norm_layer=GroupedBatchNorm)
    if cifar_stem:
        model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        model.maxpool = nn.Identity()
    return model


class Case:
    def __init__(self, name, model, n, x=None, ids=None, classes=None, targets=None, smoothing=0.0, group=0,
                 is_rounded=False, is_nll=False, rows=1):
        self.name, self.model, self.n, self.smoothing, self.group = name, model.double(), n, smoothing, group
        self.is_nll, self.rows = is_nll, rows
        self.x = values(X, n, *x).requires_grad_() if x else whole(IDS, n * len(ids), min(ids)).reshape(n, len(ids))
        if is_rounded:
            self.x = torch.round(2 * self.x.detach()).requires_grad_()
        self.classes = whole(CLASSES, n * rows, classes) if classes else None
        self.targets = values(TARGETS, n * rows, targets) if targets else None

    def loss(self, y):
        """Summed over the rows of the samples; a sample's loss is the mean of its rows."""
        if self.classes is None:
            return F.mse_loss(y, self.targets) * len(y)
        if self.is_nll:
            return F.nll_loss(y, self.classes, reduction="sum")
        return F.cross_entropy(y, self.classes, reduction="sum", label_smoothing=self.smoothing)

    def results(self):
        """Pairs (label, tensor) of a step of training and an evaluation after it."""
        GroupedBatchNorm.group = self.group
        with torch.no_grad():
            for i, (name, parameter) in enumerate(self.model.named_parameters()):
                parameter.copy_(parameter_values(i, name, parameter.shape))
        y = self.model.train()(self.x)
        loss = self.loss(y.flatten(0, -2))
        (loss / (self.n * self.rows)).backward()
        yield "loss", loss
        yield "output", y
        if self.classes is not None:
            yield "top1", (y.argmax(-1).flatten() == self.classes).sum()
        if self.x.grad is not None:
            yield "input_gradient", self.x.grad
        for name, parameter in self.model.named_parameters():
            yield "gradient:" + name, parameter.grad
        for name, buffer in self.model.named_buffers():
            if not name.endswith("num_batches_tracked"):
                yield "statistic:" + name, buffer
        yield "evaluated", self.model.eval()(self.x)


def layer_cases():
    return [
        Case("linear", Flow(fc=nn.Linear(5, 3)), 4, [5], targets=3),
        Case("relu", Flow(fc1=nn.Linear(5, 6, bias=False), relu=nn.ReLU(), fc2=nn.Linear(6, 7)), 4, [5], classes=7),
        Case("conv", Flow(conv1=nn.Conv2d(3, 4, 3, 2, 1), conv2=nn.Conv2d(4, 5, 1, bias=False), flatten=nn.Flatten(),
                          fc=nn.Linear(60, 3)), 3, [3, 7, 6], classes=3, smoothing=0.1),
        Case("global_avg_pool", Flow(conv1=nn.Conv2d(2, 3, 5, 1, 2, bias=False), pool=Pool()), 2, [2, 6, 9], classes=3),
        Case("batch_norm", Flow(bn1=GroupedBatchNorm(2), relu=nn.ReLU(), flatten=nn.Flatten(), fc=nn.Linear(24, 2)), 5,
             [2, 3, 4], targets=2, group=2),
        Case("batch_norm_plain", Flow(bn1=GroupedBatchNorm(3, eps=1e-3, momentum=0.3), flatten=nn.Flatten(),
                                      fc=nn.Linear(12, 2)), 4, [3, 2, 2], targets=2),
        Case("max_pool", Flow(pool=nn.MaxPool2d(2), flatten=nn.Flatten(), fc=nn.Linear(4, 2)), 3, [1, 5, 4], targets=2),
        Case("max_pool_overlapping", Flow(relu=nn.ReLU(), pool=nn.MaxPool2d(3, 2, 1), flatten=nn.Flatten(),
                                          fc=nn.Linear(32, 2)), 3, [2, 7, 7], targets=2),
        Case("max_pool_ties", Flow(pool=nn.MaxPool2d(3, 2, 1), flatten=nn.Flatten(), fc=nn.Linear(32, 2)), 3, [2, 7, 7],
             targets=2, is_rounded=True),
        Case("dropout", Flow(dropout=MaskedDropout(0.25), fc=nn.Linear(8, 2)), 3, [8], targets=2),
        Case("residual", Residual(), 3, [3, 4, 4], classes=3),
        Case("embedding", Factors(), 6, ids=[5, 4], targets=1),
        Case("log_softmax", Flow(fc=nn.Linear(5, 4), log_softmax=nn.LogSoftmax(1)), 3, [5], classes=4, is_nll=True),
        Case("layer_norm", Flow(fc1=nn.Linear(5, 17), ln=nn.LayerNorm(17), fc2=nn.Linear(17, 5)), 4, [5], targets=5),
        Case("rows", Rows(), 4, [3, 5], targets=4, rows=3),
        Case("rows_of_classes", Flow(fc1=nn.Linear(5, 9), relu=nn.ReLU(), fc2=nn.Linear(9, 7)), 3, [4, 5], classes=7,
             smoothing=0.1, rows=4),
        Case("rows_of_log_softmax", Flow(fc=nn.Linear(5, 6), log_softmax=nn.LogSoftmax(-1)), 3, [2, 5], classes=6,
             is_nll=True, rows=2),
        Case("tokens", Flow(wte=nn.Embedding(7, 5), ln=nn.LayerNorm(5), fc=nn.Linear(5, 6)), 3, ids=4 * [7], classes=6,
             rows=4),
        Case("tied", Tied(), 3, ids=4 * [9], classes=9, rows=4),
    ]


def model_cases():
    return [
        Case("toy", nn.Linear(20, 1), 8, [20], targets=1),
        Case("mnist_cnn", MnistNet(10), 4, [1, 10, 10], classes=10),
        Case("mnist_cnn_nll", MnistNll(10), 4, [1, 10, 10], classes=10, is_nll=True),
        Case("resnet18_cifar", resnet("resnet18", 10, True), 4, [3, 9, 9], classes=10, smoothing=0.1, group=2),
        Case("resnet50", resnet("resnet50", 12), 4, [3, 17, 17], classes=12),
        Case("movielens", NeuralRecSys(6, 9), 16, ids=[6, 9], targets=1),
    ]


def digest(tensor):
    return torch.stack([tensor.abs().sum(), (tensor.flatten() * values(DIGEST, tensor.numel())).sum()])


def write_results(path, cases, is_digested):
    with path.open("w") as file:
        print(f"# PyTorch {torch.__version__}, torchvision {torchvision.__version__}: see make_golden.py", file=file)
        for case in cases:
            for label, tensor in case.results():
                if is_digested and (":" in label or label == "input_gradient"):
                    tensor = digest(tensor)
                print(case.name, label, *(repr(v) for v in tensor.detach().double().flatten().tolist()), file=file)


def write_parameters(path):
    models = {"toy": nn.Linear(20, 1), "mnist_cnn": MnistNet(28), "movielens": NeuralRecSys(610, 9724),
              "resnet18_cifar": resnet("resnet18", 10, True)}
    models |= {name: resnet(name, 1000) for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")}
    with path.open("w") as file:
        print(f"# PyTorch {torch.__version__}, torchvision {torchvision.__version__}: see make_golden.py", file=file)
        for model, module in models.items():
            for name, parameter in module.named_parameters():
                print(model, name, *parameter.shape, file=file)


def main():
    folder = Path(sys.argv[1])
    write_parameters(folder / "parameters.txt")
    write_results(folder / "layers.txt", layer_cases(), False)
    write_results(folder / "models.txt", model_cases(), True)


if __name__ == "__main__":
    main()
