#!/usr/bin/python3
"""PyTorch doing the work of `psifold bench`, with the same options.

    pytorch_peer.py train --net resnet18 --shape 3x28x28 --batch 256 --threads 1 \\
                          --actions 3 --classes 100 --json

Needs Debian's python3-torch and python3-torchvision. One training step is what a careful user
writes: a uint8 batch in memory is made float and divided by 255; trunk, ReLU, one head per action;
cross-entropy of the taken action's logits; backward; Adam. Prediction is evaluation mode without
gradients, logits of all heads. dqn is an update of deep Q-learning: the target network's values
of a batch, Huber's loss of the taken actions, backward, Adam, and the target follows (all tensors
at once). Like psifold bench it reports the best of the steps that fit into the time. With --tuned
it also does what PyTorch offers to those who look for
it: Adam over all tensors at once (foreach) and images with the channels innermost."""
import argparse
import copy
import json
import math
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/fixtures/nn"))
import generate  # the networks of the parity fixtures  # noqa: E402


class Heads(torch.nn.Module):
    """The heads alone, on cached features."""

    def __init__(self, inputs, actions, classes):
        super().__init__()
        self.head = torch.nn.Linear(inputs, actions * classes)
        self.shape = (actions, classes)

    def forward(self, x):
        return x, self.head(x).view(-1, *self.shape)


def make_net(options, shape):
    if options.net == "heads":
        return Heads(math.prod(shape), options.actions, options.classes)
    channels, height, width = shape if len(shape) == 3 else (math.prod(shape), 1, 1)
    trunk = generate.make_trunk({"net": options.net, "channels": channels, "height": height,
                                 "width": width})
    return generate.Net(trunk, options.actions, options.classes)


def measure(options):
    shape = tuple(int(side) for side in options.shape.split("x"))
    torch.manual_seed(0)
    net = make_net(options, shape)
    images = options.net in ("resnet18", "cnn")
    if images:
        inputs = torch.randint(0, 256, (options.batch, *shape), dtype=torch.uint8)
    else:
        inputs = torch.rand(options.batch, *shape)
    actions = torch.randint(0, options.actions, (options.batch,))
    targets = torch.randint(0, options.classes, (options.batch,))
    rows = torch.arange(options.batch)
    if options.tuned and images:
        net = net.to(memory_format=torch.channels_last)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=options.tuned)

    def prepared():
        return inputs.float() / 255 if images else inputs

    if options.work == "dqn":  # a target network, and what it is asked about
        target = copy.deepcopy(net).eval()
        following = torch.randint(0, 256, (options.batch, *shape), dtype=torch.uint8)
        rewards, going_on = torch.rand(options.batch), torch.ones(options.batch)
        pairs = list(zip(target.state_dict().values(), net.state_dict().values()))
        followers = [t for t, _ in pairs if t.is_floating_point()]
        leaders = [o for _, o in pairs if o.is_floating_point()]

    def dqn():
        with torch.no_grad():
            best = target(following.float() / 255)[1].squeeze(-1).max(1).values
            wanted = rewards + 0.95 * going_on * best
        adam.zero_grad(set_to_none=True)
        values = net(prepared())[1].squeeze(-1)
        torch.nn.functional.smooth_l1_loss(values[rows, actions], wanted).backward()
        adam.step()
        with torch.no_grad():
            torch._foreach_mul_(followers, 0.95)
            torch._foreach_add_(followers, leaders, alpha=0.05)

    def train():
        adam.zero_grad(set_to_none=True)
        logits = net(prepared())[1]
        torch.nn.functional.cross_entropy(logits[rows, actions], targets).backward()
        adam.step()

    def predict():
        with torch.inference_mode():
            net(prepared())

    step = {"train": train, "predict": predict, "dqn": dqn}[options.work]
    net.train(options.work != "predict")
    for _ in range(2):
        step()
    steps, best, started = 0, math.inf, time.perf_counter()
    while steps < 3 or time.perf_counter() - started < options.seconds:
        before = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - before)
        steps += 1
    return {"images_per_s": options.batch / best, "ms_per_step": 1000 * best, "steps": steps,
            "mean_ms_per_step": 1000 * (time.perf_counter() - started) / steps, "threads": torch.get_num_threads(), "torch": torch.__version__}


def main():
    parser = argparse.ArgumentParser(description="PyTorch doing the work of psifold bench")
    parser.add_argument("work", choices=("train", "predict", "dqn"))
    parser.add_argument("--net", choices=("resnet18", "cnn", "mlp", "heads"), default="resnet18")
    parser.add_argument("--shape", default="3x28x28")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--actions", type=int, default=3)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5, help="how long to measure")
    parser.add_argument("--tuned", action="store_true", help="foreach Adam, channels-last images")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    result = measure(options)
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{result['images_per_s']:.0f} images/s, {result['ms_per_step']:.2f} ms a step")


if __name__ == "__main__":
    main()
