"""Our ONNX and safetensors files in other people's hands: onnx's checker and shape inference,
onnxruntime, the safetensors package.

nn_tool, which writes them, is in the folder PSIFOLD_TOOLS, or beside PSI_TOOL."""
import json
import os
import struct
import subprocess

import numpy
import onnx
import onnxruntime
import pytest

TOOLS = os.environ.get("PSIFOLD_TOOLS") or os.path.dirname(os.environ["PSI_TOOL"])
TOOL = os.path.join(TOOLS, "nn_tool")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    subprocess.run([TOOL, "small", str(folder)], check=True)
    return folder


def weights(shape, k):
    """nn_tool's fill."""
    i = numpy.arange(int(numpy.prod(shape)))
    values = (i * 37 + k * 11) % 101
    return (values.astype(numpy.float32) / numpy.float32(101) - numpy.float32(0.5)).reshape(shape)


def windows(x, size, stride, pad, value):
    """(N, C, H, W) → (N, C, H', W', size, size)."""
    x = numpy.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=value)
    every = numpy.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    return every[:, :, ::stride, ::stride]


def reference(x):
    """What nn_tool's small network computes, in double."""
    x = x.astype(numpy.float64) / 255
    kernels = weights((4, 3, 3, 3), 0).astype(float)
    x = numpy.einsum("nchwij,kcij->nkhw", windows(x, 3, 2, 1, 0), kernels)
    weight, bias, mean, var = (weights((1, 4, 1, 1), k).astype(float) for k in (1, 2, 3, 4))
    x = (x - mean) / numpy.sqrt(var + 1 + 1e-5) * weight + bias
    x = windows(numpy.maximum(x, 0), 3, 2, 1, -numpy.inf).max((4, 5))
    return (2 * x).mean((2, 3)) @ weights((5, 4), 5).astype(float).T + weights((5,), 6)


def test_the_checker_accepts_it(small):
    model = onnx.load(small / "small.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 7
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    assert model.producer_name == "psifold"


def test_shapes_are_inferred_with_a_free_batch(small):
    model = onnx.shape_inference.infer_shapes(onnx.load(small / "small.onnx"), strict_mode=True)
    shapes = {value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
              for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
    assert shapes["x"] == ["N", 3, 9, 9]
    assert shapes["conv"] == ["N", 4, 5, 5]
    assert shapes["pool"] == ["N", 4, 3, 3]
    assert shapes["y"] == ["N", 5]


@pytest.mark.parametrize("n", [1, 2, 17])
def test_onnxruntime_computes_the_network(small, n):
    session = onnxruntime.InferenceSession(small / "small.onnx", providers=["CPUExecutionProvider"])
    x = numpy.random.default_rng(n).integers(0, 256, (n, 3, 9, 9), numpy.uint8)
    (y,) = session.run(["y"], {"x": x})
    assert y.shape == (n, 5)
    numpy.testing.assert_allclose(y, reference(x), rtol=1e-5, atol=1e-6)


def write_inputs(path, array):
    kind = {"uint8": "U8", "float32": "F32"}[str(array.dtype)]
    header = json.dumps({"inputs": {"dtype": kind, "shape": array.shape,
                                    "data_offsets": [0, array.nbytes]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())


def read_outputs(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8:8 + length]), data[8 + length:]
    return {name: numpy.frombuffer(data[slice(*header[name]["data_offsets"])], numpy.float32)
                  .reshape(header[name]["shape"]) for name in ("features", "logits")}


@pytest.mark.parametrize("kind, shape, dtype", [
    ("resnet18", (3, 28, 28), "uint8"), ("resnet18", (4, 33, 20), "float32"),
    ("cnn", (3, 28, 28), "uint8"), ("cnn", (1, 9, 13), "float32"), ("mlp", (5,), "float32")])
def test_onnxruntime_agrees_with_our_networks(tmp_path, kind, shape, dtype):
    """A network after a few steps of training: what psifold predicts and what onnxruntime does."""
    random = numpy.random.default_rng(3)
    x = random.integers(0, 256, (32, *shape)) if dtype == "uint8" else random.random((32, *shape))
    x = x.astype(dtype)
    write_inputs(tmp_path / "inputs.safetensors", x)
    subprocess.run([TOOL, "make", kind, "x".join(map(str, shape)), "3", "10",
                    str(tmp_path / "inputs.safetensors"), str(tmp_path)], check=True)
    onnx.checker.check_model(onnx.load(tmp_path / "net.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx",
                                           providers=["CPUExecutionProvider"])
    ours = read_outputs(tmp_path / "outputs.safetensors")
    for n in (1, 32):
        theirs = session.run(["features", "logits"], {"observations": x[:n]})
        for name, values in zip(("features", "logits"), theirs):
            expected = ours[name][:n]
            assert values.shape == expected.shape
            error = numpy.linalg.norm(values - expected) / numpy.linalg.norm(expected)
            assert error <= 1e-4, (name, n, error)


def test_the_safetensors_package_reads_our_file(small):
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(small / "small.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt", "quoted": 'a "b" ä\n'}
        got = {name: file.get_tensor(name) for name in file.keys()}
    assert sorted(got) == ["bytes", "conv.weight", "counts", "empty", "fc.weight", "number"]
    numpy.testing.assert_array_equal(got["conv.weight"], weights((4, 3, 3, 3), 0))
    numpy.testing.assert_array_equal(got["fc.weight"], weights((5, 4), 5))
    assert got["counts"].tolist() == [-1, 2**63 - 1]
    assert got["number"].shape == () and got["number"] == 0.1
    assert got["bytes"].tolist() == [[0], [128], [255]]
    assert got["empty"].shape == (0, 4)
