"""Ways of seeing: small whole numbers become what a sensor, a camera or a wrapper hands out.

A view gets the features of every observation (whole numbers, one column per factor), its episode
and its time in it, and returns observations and what was chosen. Noise is measured in the least
distance of two different feature rows and stays below a tenth of it, so that nothing is confounded.
"""

import numpy as np
from scipy.spatial import cKDTree

NOISE = [0.01, 0.03, 0.1]
FEW_IDS = 300


def ids(features):
    """The different rows, and which one each observation is."""
    rows, which = np.unique(features, axis=0, return_inverse=True)
    return rows, which.ravel()


def sizes(features):
    return features.max(0) + 1


def spacing(points):
    """The least distance of two of them."""
    points = np.unique(points, axis=0)
    if len(points) < 2:
        return 1.0
    return float(cKDTree(points).query(points, 2)[0][:, 1].min())


def unit(features):
    return features / np.maximum(features.max(0), 1)


def blurred(rng, table, which, scale=1.0):
    """Rows of a table with noise, in some type."""
    table = table * scale
    sigma = float(rng.choice(NOISE)) * spacing(table)
    seen = table[which] + sigma * rng.normal(size=(len(which), table.shape[1]))
    kind = str(rng.choice(["float32", "float64"]))
    return seen.astype(kind), f"{table.shape[1]} dims, sigma {sigma:.3g}, {kind}"


def number(rng, features, episode, time):
    rows, which = ids(features)
    kind = str(rng.choice(["int64", "int32"]))
    return rng.permutation(len(rows))[which].astype(kind), kind


def numbers(rng, features, episode, time):
    kind = str(rng.choice(["int64", "int32", "uint8"]))
    return np.minimum(features, 255).astype(kind) if features.max() < 256 else features, kind


def onehot(rng, features, episode, time):
    size = sizes(features)
    hot = np.concatenate([np.eye(n, dtype="uint8")[features[:, i]] for i, n in enumerate(size)], 1)
    kind = str(rng.choice(["float32", "uint8", "float64"]))
    return hot.astype(kind), kind


def bits(rng, features, episode, time):
    size = sizes(features)
    found = [
        (features[:, i] >> b) & 1
        for i, n in enumerate(size)
        for b in range(max(1, int(n - 1).bit_length()))
    ]
    return np.column_stack(found).astype(str(rng.choice(["uint8", "int64", "float32"]))), ""


def plain(rng, features, episode, time):
    """Floats that repeat exactly, at some scale."""
    scale = 10.0 ** rng.uniform(-3, 3)
    kind = str(rng.choice(["float32", "float64"]))
    return (features * scale).astype(kind), f"scale {scale:.3g} {kind}"


def embedded_exact(rng, features, episode, time):
    rows, which = ids(features)
    d = int(rng.choice([2, 4, 8, 16]))
    return rng.normal(size=(len(rows), d)).astype("float32")[which], f"{d} dims"


def angles_exact(rng, features, episode, time):
    turn = 2 * np.pi * features / sizes(features)
    return np.concatenate([np.sin(turn), np.cos(turn)], 1).astype("float32"), ""


def noisy(rng, features, episode, time):
    rows, which = ids(features)
    return blurred(rng, rows.astype(float), which, 10.0 ** rng.uniform(-3, 3))


def noisy_unit(rng, features, episode, time):
    """Every factor between 0 and 1, as normalising wrappers do it."""
    rows, which = ids(features)
    return blurred(rng, unit(rows), which)


def embedded(rng, features, episode, time):
    rows, which = ids(features)
    return blurred(rng, rng.normal(size=(len(rows), int(rng.choice([2, 4, 8, 16, 32, 64])))), which)


def linear(rng, features, episode, time):
    rows, which = ids(features)
    d = int(rng.choice([2, 4, 8, 32]))
    return blurred(rng, unit(rows) @ rng.normal(size=(rows.shape[1], d)), which)


def nonlinear(rng, features, episode, time):
    rows, which = ids(features)
    inside = np.tanh(
        2 * (unit(rows) - 0.5) @ rng.normal(size=(rows.shape[1], 24)) * 1.5 + rng.normal(size=24)
    )
    return blurred(rng, inside @ rng.normal(size=(24, int(rng.choice([3, 8, 16, 64])))), which)


def hot_noise(rng, features, episode, time):
    rows, which = ids(features)
    size = sizes(features)
    return blurred(
        rng, np.concatenate([np.eye(n)[rows[:, i]] for i, n in enumerate(size)], 1), which
    )


def nuisance(rng, features, episode, time):
    """Good sensors beside others that show what has nothing to do with the task."""
    seen, detail = noisy_unit(rng, features, episode, time)
    n, k = len(seen), int(rng.integers(1, 5))
    kind = str(rng.choice(["white", "drift", "episode", "clock", "uniform"]))
    size = float(rng.choice([0.1, 1.0, 10.0]))
    if kind == "white":
        more = rng.normal(size=(n, k))
    elif kind == "uniform":
        more = rng.uniform(-1, 1, size=(n, k))
    elif kind == "episode":
        more = rng.normal(size=(episode.max() + 1, k))[episode]
    elif kind == "clock":
        more = np.repeat(time[:, None] / max(1, time.max()), k, 1) * np.arange(1, k + 1)
    else:
        more = np.zeros((n, k))
        for i in range(1, n):
            more[i] = (
                0.95 * more[i - 1] + 0.3 * rng.normal(size=k) if time[i] else rng.normal(size=k)
            )
    order = rng.permutation(seen.shape[1] + k)
    return np.concatenate([seen, size * more], 1)[:, order].astype(
        "float32"
    ), f"{detail}; {k} {kind} of {size}"


def looks(rng, features, episode, time):
    """Every state has several faces, and noise."""
    rows, which = ids(features)
    m, d = int(rng.integers(2, 5)), int(rng.choice([3, 6, 12]))
    return blurred(
        rng, rng.normal(size=(len(rows) * m, d)), which * m + rng.integers(m, size=len(which))
    )


def angles(rng, features, episode, time):
    rows, which = ids(features)
    turn = 2 * np.pi * rows / sizes(features)
    return blurred(rng, np.concatenate([np.sin(turn), np.cos(turn)], 1), which)


def cells(rng, features, episode, time):
    """A point somewhere in the cell, with a margin between cells."""
    fill = float(rng.choice([0.3, 0.6, 0.8]))
    return (features + fill * rng.random(features.shape)).astype("float32"), f"fill {fill}"


def measured(rng, features, episode, time):
    """Noise, and then rounded as a device would."""
    seen, detail = noisy_unit(rng, features, episode, time)
    return np.round(seen, 2 if sizes(features).max() < 8 else 3).astype(
        "float32"
    ), detail + ", rounded"


def mixed_scales(rng, features, episode, time):
    rows, which = ids(features)
    seen = rows[which] + float(rng.choice(NOISE)) * rng.normal(size=(len(which), rows.shape[1]))
    scales = 10.0 ** rng.uniform(-3, 3, rows.shape[1])
    return (seen * scales + scales * rng.normal(size=rows.shape[1])).astype("float32"), str(
        scales.round(4).tolist()
    )


def scene(rng, features, episode, time):
    """Every factor is a mark on its own strip of a picture."""
    rows, which = ids(features)
    size = sizes(features)
    side = int(max(8, min(20, max(size.max(), 2 * rows.shape[1]))))
    strips = np.array_split(np.arange(side), rows.shape[1])
    pictures = np.zeros((len(rows), side, side), "uint8")
    for i, row in enumerate(rows):
        for f, strip in enumerate(strips):
            columns = np.array_split(np.arange(side), min(size[f], side))
            mark = row[f] % len(columns)
            pictures[i, strip[0] : strip[-1] + 1, columns[mark]] = 255 - 60 * (
                row[f] // len(columns)
            )
    return grainy(rng, pictures, which)


def patterns(rng, features, episode, time):
    rows, which = ids(features)
    side = int(rng.choice([8, 12, 16]))
    coarse = rng.integers(0, 2, size=(len(rows), side // 2, side // 2)) * 200
    return grainy(rng, np.kron(coarse, np.ones((1, 2, 2))), which)


def grainy(rng, pictures, which):
    """With or without grain of the camera; some have a channel first, or last."""
    grain = float(rng.choice([0, 0, 5, 25]))
    seen = pictures[which].astype("float32")
    if grain:
        seen = seen + grain * rng.normal(size=seen.shape)
    seen = np.clip(np.round(seen), 0, 255).astype("uint8")
    layout = str(rng.choice(["plain", "first", "last"]))
    seen = (
        seen[:, None]
        if layout == "first"
        else np.repeat(seen[..., None], 3, 3)
        if layout == "last"
        else seen
    )
    return seen, f"{seen.shape[1:]}, grain {grain}"


def catalogue(*functions):
    return {function.__name__: function for function in functions}


TABLES = catalogue(number, numbers, onehot, bits, plain, embedded_exact, angles_exact)
VECTORS = catalogue(
    noisy,
    noisy_unit,
    embedded,
    linear,
    nonlinear,
    hot_noise,
    nuisance,
    looks,
    angles,
    cells,
    measured,
    mixed_scales,
)
IMAGES = catalogue(scene, patterns)
