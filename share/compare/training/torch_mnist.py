"""The peer on real digits: the tutorial's network, Adadelta and schedule. Prints the accuracy on the split `val`."""

import argparse
import json

import torch

from torch_models import loss_of, make_model, read_split


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    splits = {name: read_split(arguments.data, name, 0.1307, 0.3081, torch.float32) for name in ("train", "val")}
    model = make_model("mnist_cnn", has_dropout=True)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    loss_function = loss_of("mnist_cnn")
    x, y = splits["train"]
    for _ in range(arguments.epochs):
        for ids in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss_function(model(x[ids]), y[ids]).backward()
            optimizer.step()
        schedule.step()
    model.eval()
    x, y = splits["val"]
    with torch.no_grad():
        found = torch.cat([model(part).argmax(1) for part in x.split(1000)])
    print(json.dumps({"top1_percent": 100 * (found == y).double().mean().item()}))


if __name__ == "__main__":
    main()
