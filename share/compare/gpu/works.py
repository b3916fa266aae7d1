"""What is compared, and how both programs are told of it."""

from dataclasses import dataclass

SGD = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-5}
ADADELTA = {"optimizer": "adadelta", "lr": 1.0}
ADAMW = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.01}
PLAIN_SGD = {"optimizer": "sgd", "lr": 1e-3}


@dataclass(frozen=True)
class Work:
    model: str
    recipe: str
    batch: int
    optimizer: dict
    steps: int  # of a window
    precisions: tuple
    size: int = 0
    classes: int = 10
    # One sample in training needs this much, with batch normalization, addition and ReLU in one pass. README.md has the sources.
    gflop: float = 0.0
    mb_of_16_bits: float = 0.0


def resnet50(batch):
    return Work("resnet50", "resnet50_synthetic", batch, SGD, 20, ("bf16", "f16"), 224, 1000, 24.29, 368)


def resnet18(batch):
    return Work("resnet18", "resnet50_synthetic", batch, SGD, 100, ("bf16", "f16"), 64, 200, 0.87, 6.4)


WORKS = {
    "ResNet-50@224, batch 256": resnet50(256),
    "ResNet-50@224, batch 512": resnet50(512),
    "ResNet-18@64, batch 256": resnet18(256),
    "ResNet-18@64, batch 1024": resnet18(1024),
    "ResNet-18@64, batch 4096": resnet18(4096),
    "MNIST CNN, batch 64": Work("mnist_cnn", "digits", 64, ADADELTA, 300, ("bf16", "f32"), size=28),
    "MovieLens, batch 256": Work("movielens", "movielens", 256, ADAMW, 500, ("bf16", "f32")),
    "toy, batch 32": Work("toy", "toy", 32, PLAIN_SGD, 1000, ("bf16", "f32")),
}
IMAGE_MODELS = ("resnet18", "resnet50", "mnist_cnn")
# torch.compile's modes; "eager": without it.
MODES = ("eager", "default", "reduce-overhead", "max-autotune")


def flags_of(work, precision, steps):
    """Of `lockstep train`."""
    words = [work.recipe, "--device", "cuda", "--precision", precision, "--batch", work.batch, "--epochs", 1]
    words += ["--synthetic", "--synthetic-steps", steps, "--max-steps", steps, "--val-split", ""]
    for key, value in work.optimizer.items():
        words += ["--" + key.replace("_", "-"), value]
    if work.model.startswith("resnet"):
        words += ["--model", work.model, "--image-size", work.size, "--classes", work.classes, "--bn-group", work.batch]
    return list(map(str, words))
