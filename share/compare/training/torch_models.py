"""The tutorials' models in PyTorch, with the names and shapes that Lockstep's files of weights have, and their data."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data.distributed import DistributedSampler

N_USERS, N_ITEMS = 610, 9724


class MnistCnn(nn.Module):
    """pytorch/examples mnist, as NCSA Delta teaches it; the last layer's softmax is part of the loss."""

    def __init__(self, has_dropout):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25 if has_dropout else 0)
        self.dropout2 = nn.Dropout(0.5 if has_dropout else 0)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = functional.relu(self.conv2(functional.relu(self.conv1(x))))
        x = self.dropout1(functional.max_pool2d(x, 2))
        return self.fc2(self.dropout2(functional.relu(self.fc1(torch.flatten(x, 1)))))


class Block(nn.Module):
    """torchvision's BasicBlock (two convolutions of 3x3) or Bottleneck (1x1, 3x3, 1x1)."""

    def __init__(self, n_in, width, stride, is_bottleneck):
        super().__init__()
        n_out = 4 * width if is_bottleneck else width
        kernels = (1, 3, 1) if is_bottleneck else (3, 3)
        widths = (n_in, width, width, n_out) if is_bottleneck else (n_in, width, n_out)
        strides = (1, stride, 1) if is_bottleneck else (stride, 1)
        for i, (kernel, step) in enumerate(zip(kernels, strides), 1):
            conv = nn.Conv2d(widths[i - 1], widths[i], kernel, step, kernel // 2, bias=False)
            self.add_module(f"conv{i}", conv)
            self.add_module(f"bn{i}", nn.BatchNorm2d(widths[i]))
        self.n_convs = len(kernels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = x
        for i in range(1, self.n_convs + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.n_convs:
                y = self.relu(y)
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, n_blocks, is_bottleneck, n_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        n_in = 64
        for stage, n in enumerate(n_blocks):
            width = 64 << stage
            blocks = []
            for i in range(n):
                blocks.append(Block(n_in, width, 2 if stage > 0 and i == 0 else 1, is_bottleneck))
                n_in = 4 * width if is_bottleneck else width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(n_in, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class MovieLens(nn.Module):
    """The recommender of RunPod's tutorial."""

    def __init__(self):
        super().__init__()
        self.user_factors = nn.Embedding(N_USERS, 58)
        self.item_factors = nn.Embedding(N_ITEMS, 274)
        self.lin = nn.Linear(58 + 274, 1)

    def forward(self, x):
        return self.lin(torch.cat((self.user_factors(x[:, 0]), self.item_factors(x[:, 1])), 1))


class Toy(nn.Linear):
    def __init__(self):
        super().__init__(20, 1)


def make_model(name, n_classes=10, has_dropout=False):
    if name == "toy":
        return Toy()
    if name == "movielens":
        return MovieLens()
    if name == "mnist_cnn":
        return MnistCnn(has_dropout)
    n_blocks = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}[name]
    return ResNet(n_blocks, name == "resnet50", n_classes)


def loss_of(name):
    if name in ("toy", "movielens"):
        return lambda output, y: functional.mse_loss(output.flatten(), y.flatten())
    return functional.cross_entropy


def make_optimizer(spec, parameters, **options):
    """`spec` as JSON gives it: {"optimizer": "sgd", "lr": 0.1, ...}."""
    spec = dict(spec)
    kinds = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW, "adadelta": torch.optim.Adadelta}
    return kinds[spec.pop("optimizer")](parameters, **spec, **options)


def read_split(folder, split, mean, std, dtype):
    """All of a set: x as the model takes it, and y. Pixels become (v / 255 - mean) / std, computed in `dtype`."""
    import h5py  # not on every machine that computes
    import numpy

    with h5py.File(f"{folder}/{split}-00000.h5") as file:
        x, y = torch.from_numpy(file["x"][...]), torch.from_numpy(file["y"][...].astype(numpy.float32))
    if x.dtype == torch.int32:
        return x.long(), y.to(dtype)
    if x.dtype != torch.uint8:
        return x.to(dtype), y.to(dtype)
    x = x.unsqueeze(1) if x.ndim == 3 else x.permute(0, 3, 1, 2).contiguous()
    return x.to(dtype).div_(255).sub_(mean).div_(std), y.long()


def torch_order(n_samples, seed, epoch, n_ranks, batch):
    """The samples of each step, a list for each rank of n_ranks: a batch of `batch` at each."""
    samplers = [DistributedSampler(range(n_samples), n_ranks, rank, seed=seed) for rank in range(n_ranks)]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    orders = [list(sampler) for sampler in samplers]
    for first in range(0, len(orders[0]), batch):
        yield [order[first : first + batch] for order in orders]
