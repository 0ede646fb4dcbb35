"""The representation as a torch module says what psifold says: to 1e-5, for each kind of network.

usage: python torch_peer.py; run by tests/python/run with Debian's torch.
"""

import numpy as np
import torch

import psifold

# what the networks have learnt is not asked about: only that both say the same
STEPS = {"trunk_steps": 20, "head_steps": 20, "representation_steps": 120}


def compare(data, **options):
    run = psifold.cluster(data, progress=False, **STEPS, **options)
    module = run.to_torch()
    rows = data.observations[:300]
    with torch.no_grad():
        logits = module(torch.from_numpy(np.array(rows))).numpy()
    labels, confidence = run.predict(rows, return_confidence=True)
    known = labels >= 0
    theirs = np.exp(logits - logits.max(axis=1, keepdims=True))
    theirs /= theirs.sum(axis=1, keepdims=True)
    best = theirs.max(axis=1)
    off = float(np.abs(best - confidence)[known].max())
    clear = known & (np.sort(theirs, axis=1)[:, -1] - np.sort(theirs, axis=1)[:, -2] > 1e-4)
    kind = module.spec["kind"]
    print(f"{kind}: {known.sum()} rows, probabilities off by at most {off:.2e}")
    assert known.sum() > 200
    assert off < 1e-5, f"{kind}: {off}"
    assert (logits.argmax(axis=1) == labels)[clear].all(), kind


compare(psifold.generate("point-column-world", episodes=60), hidden=32)
lock = psifold.generate(
    "combination-lock", episodes=40, digits="drawn", dials=2, digits_per_dial=3, broken="none"
)
for kind in ("cnn", "resnet18"):
    compare(lock, approximator=kind, method="successor-features")
