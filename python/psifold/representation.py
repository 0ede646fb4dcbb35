"""The representation of a run as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from psifold._native import address
from psifold.errors import ShapeError

if TYPE_CHECKING:
    from psifold.run import Run

CHANNELS = (32, 64, 128)  # of the convolutional network; the last goes on
LARGEST_MAP = 4


class Mlp(nn.Module):
    """Hidden layers fc1, fc2, … with ReLU."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        width = int(np.prod(spec["input"]))
        self.layers: list[nn.Module] = []
        for i, units in enumerate(spec["hidden"]):
            layer = nn.Linear(width, units)
            self.add_module(f"fc{i + 1}", layer)
            self.layers.append(layer)
            width = units

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Cnn(nn.Module):
    """3×3 convolutions with stride 2, batch norm and ReLU, then units over all of the map."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        channels, height, width = spec["input"]
        self.layers: list[tuple[nn.Module, nn.Module]] = []
        while len(self.layers) < 2 or max(height, width) > LARGEST_MAP:
            wider = CHANNELS[min(len(self.layers), len(CHANNELS) - 1)]
            conv = nn.Conv2d(channels, wider, 3, 2, 1, bias=False)
            norm = nn.BatchNorm2d(wider)
            self.layers.append((conv, norm))
            self.add_module(f"conv{len(self.layers)}", conv)
            self.add_module(f"bn{len(self.layers)}", norm)
            channels, height, width = wider, (height + 1) // 2, (width + 1) // 2
        self.fc = nn.Conv2d(channels, spec["n_features"], (height, width), bias=False)
        self.bn_fc = nn.BatchNorm2d(spec["n_features"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in self.layers:
            x = torch.relu(norm(conv(x)))
        return torch.relu(self.bn_fc(self.fc(x))).flatten(1)


def resnet18(spec: dict[str, Any]) -> nn.Module:
    """torchvision's, for any number of channels; ReLU of its outputs are the features."""
    import torchvision

    net = torchvision.models.resnet18()
    net.conv1 = nn.Conv2d(spec["input"][0], 64, 7, 2, 3, bias=False)
    return net


class Representation(nn.Module):
    """Raw observations (n, …) in, logits (n, K) of the latent states out.

    ``features`` gives what they are computed from. Images may have their channels first or last,
    as they had them in the data; frames that are stacked are (n, stack, …).
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        self.spec = spec
        trunks = {"mlp": Mlp, "cnn": Cnn, "resnet18": resnet18}
        self.trunk = trunks[spec["kind"]](spec)
        self.head = nn.Linear(spec["n_features"], spec["n_outputs"])
        parts = spec["input"][0]
        usual = 1.0 / 255.0 if spec["dtype"] == "uint8" else 1.0
        shape = (1, parts) + (1,) * (len(spec["input"]) - 1)
        mean, scale = spec["mean"] or [0.0] * parts, spec["scale"] or [usual] * parts
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).reshape(shape))
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32).reshape(shape))

    def inputs(self, observations: torch.Tensor) -> torch.Tensor:
        """Observations as the network takes them: channels first, mean 0 and variance 1."""
        shape, wanted = tuple(observations.shape[1:]), tuple(self.spec["input"])
        if len(wanted) == 1 and int(np.prod(shape)) == wanted[0]:
            x = observations.reshape(len(observations), *wanted)
        elif shape == wanted:
            x = observations
        elif len(shape) == 3 and (shape[2], shape[0], shape[1]) == wanted:
            x = observations.permute(0, 3, 1, 2)
        elif (1, *shape) == wanted:
            x = observations[:, None]
        elif len(shape) == 4 and (shape[0] * shape[1], *shape[2:]) == wanted:
            x = observations.flatten(1, 2)
        elif len(shape) == 4 and (shape[0] * shape[3], shape[1], shape[2]) == wanted:
            x = observations.permute(0, 1, 4, 2, 3).flatten(1, 2)
        else:
            raise ShapeError(f"observations are of shape {shape}, the network takes {wanted}")
        return (x.to(self.mean.dtype) - self.mean) * self.scale

    def features(self, observations: torch.Tensor) -> torch.Tensor:
        """(n, D)"""
        out = self.trunk(self.inputs(observations))
        return torch.relu(out) if self.spec["kind"] == "resnet18" else out

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.features(observations))
        return out


def to_torch(run: Run) -> Representation:
    """A module with the weights of the run's network, ready to predict."""
    from ctypes import POINTER, c_float, cast

    session, pointer = run._session, run._handle.pointer
    spec = session.text("flat_run_network", pointer)
    module = Representation(spec)
    values = {}
    for index, tensor in enumerate(spec.pop("tensors")):
        array = np.empty(tensor["shape"], np.float32)
        session.call("flat_run_tensor", pointer, index, cast(address(array) or 0, POINTER(c_float)))
        name = tensor["name"]
        values[name if name.startswith("head.") else f"trunk.{name}"] = torch.from_numpy(array)
    known = module.state_dict()
    shaped = {name: value.reshape(known[name].shape) for name, value in values.items()}
    missing, unexpected = module.load_state_dict(shaped, strict=False)
    left = [name for name in missing if "num_batches" not in name and "." in name]
    assert not left and not unexpected, f"{left} are not in the run's network"
    module.eval()
    return module
