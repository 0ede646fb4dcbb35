#!/usr/bin/python3
"""Our model files in torchvision's hands, and torchvision's in ours.

    /usr/bin/python3 tests/interop/torch_interop.py build/tests/nn_tool

Needs Debian's python3-torch and python3-torchvision; exit code 77 (skipped) without them. A
resnet18 trained by psifold for a few steps is loaded by load_state_dict(strict=True) and must give
the same outputs; a resnet18 of torchvision's is written as safetensors, read by psifold, and must,
too. The inputs are three stacked MNIST digits each, where $PSIFOLD_CACHE or the cache folder has
them, else noise."""
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(1 if os.environ.get("PSIFOLD_REFUSE_SKIP") else 77)

KINDS = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "U8": numpy.uint8}
ACTIONS, CLASSES, COUNT = 3, 10, 48
BOUND = 1e-4  # of reduced-multiply convolutions


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    notes = header.pop("__metadata__", {})
    return {name: torch.from_numpy(
        numpy.frombuffer(data[slice(*entry["data_offsets"])], KINDS[entry["dtype"]])
        .reshape(entry["shape"]).copy()) for name, entry in header.items()}, notes


def save(path, tensors, notes=None):
    names = {numpy.dtype(kind): name for name, kind in KINDS.items()}
    header, data, offset = {"__metadata__": notes or {}}, [], 0
    for name, tensor in tensors.items():
        array = tensor.detach().numpy()
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        data.append(array.tobytes())
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def digits():
    """(COUNT, 3, 28, 28) bytes, and what they are."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = [os.environ.get("PSIFOLD_CACHE", ""), os.path.join(cache, "psifold")]
    for folder in filter(None, folders):
        for name in ("t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte",
                     "t10k-images-idx3-ubyte.gz"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                    raw = file.read(16 + COUNT * 3 * 28 * 28)[16:]
                return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(
                    COUNT, 3, 28, 28), "MNIST digits"
    torch.manual_seed(1)
    return torch.randint(0, 256, (COUNT, 3, 28, 28), dtype=torch.uint8), "noise"


def outputs(state, x):
    """Features and logits by torchvision from a state_dict with heads."""
    state = dict(state)
    head = [state.pop("head.weight"), state.pop("head.bias")]
    net = torchvision.models.resnet18()
    net.load_state_dict(state, strict=True)
    net.eval()
    with torch.inference_mode():
        features = torch.relu(net(x.float() / 255))
        return features, torch.nn.functional.linear(features, *head)


def compare(what, ours, theirs):
    worst = 0.0
    for name, expected in zip(("features", "logits"), theirs):
        error = ((ours[name] - expected).norm() / expected.norm()).item()
        print(f"{what}: {name} differ by {error:.1e}")
        worst = max(worst, error)
    return worst <= BOUND


def main(tool):
    x, kind = digits()
    print(f"{COUNT} inputs of {kind}")
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "inputs.safetensors")
        save(inputs, {"inputs": x})
        subprocess.run([tool, "make", "resnet18", "3x28x28", str(ACTIONS), str(CLASSES), inputs,
                        folder], check=True)
        state, notes = load(os.path.join(folder, "net.safetensors"))
        good = len(state) == 122 + 2 and int(state["bn1.num_batches_tracked"]) == 5
        if not good:
            print("not a state_dict of resnet18 after five batches, with heads")
        ours, _ = load(os.path.join(folder, "outputs.safetensors"))
        good &= compare("psifold's network in torchvision", ours, outputs(state, x))

        # the other way round: weights of torchvision's own, with our notes
        torch.manual_seed(2)
        theirs = torchvision.models.resnet18()
        theirs(x.float() / 255)  # running statistics
        state = dict(theirs.state_dict(), **{
            name: torch.randn(state[name].shape) for name in ("head.weight", "head.bias")})
        path = os.path.join(folder, "theirs.safetensors")
        save(path, state, notes)
        result = os.path.join(folder, "result.safetensors")
        subprocess.run([tool, "predict", path, inputs, result], check=True)
        good &= compare("torchvision's network in psifold", load(result)[0], outputs(state, x))
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: torch_interop.py NN_TOOL")
    sys.exit(main(sys.argv[1]))
