#!/usr/bin/env python3
"""A survey of grids seen as small images: noise, jitter, changing light, something else that moves.

    images.py make FOLDER FROM TO        write instances FROM to TO - 1
    images.py run FOLDER --psifold build/psifold

A square on a ground of 20 by 20 pixels shows the cell; four actions move it, the last cell pays 1
and is the end. Every other cell is a latent state of its own: actions have names, so no two are
alike."""

import sys

import numpy as np
from vectors import command_line

FAMILIES = ["noise", "jitter", "light", "distractor", "dark"]
PIXELS, LONGEST = 20, 50


class Camera:
    """What is seen: a family's picture of a cell."""

    def __init__(self, rng, family, side):
        self.rng, self.family, self.size = rng, family, PIXELS // side
        self.side, self.other = side, rng.integers(0, PIXELS - 3, 2)

    def look(self, cell):
        rng, size = self.rng, self.size
        top, left = (int(x) * size for x in divmod(cell, self.side))
        image = np.zeros((PIXELS, PIXELS))
        bright = 30 if self.family == "dark" else 200
        if self.family == "jitter":
            down, right = rng.integers(0, 2, 2)
            image[top + down : top + down + size - 1, left + right : left + right + size - 1] = (
                bright
            )
        else:
            image[top : top + size, left : left + size] = bright
        if self.family == "distractor":  # another square, which goes its own way
            self.other = np.clip(self.other + rng.integers(-1, 2, 2), 0, PIXELS - 3)
            image[self.other[0] : self.other[0] + 3, self.other[1] : self.other[1] + 3] = 120
        if self.family == "light":
            image = image * rng.uniform(0.4, 1) + rng.uniform(0, 40)
        image += rng.normal(0, 5 if self.family == "distractor" else 15, image.shape)
        return np.clip(image, 0, 255).astype(np.uint8)


def step(cell, action, side):
    row, column = divmod(cell, side)
    row = min(max(row + (action == 1) - (action == 0), 0), side - 1)
    column = min(max(column + (action == 3) - (action == 2), 0), side - 1)
    return row * side + column


def instance(number):
    """Facts and arrays of one instance."""
    rng = np.random.default_rng([number, 0x696D])
    family = FAMILIES[number % len(FAMILIES)]
    side, episodes, slip = (
        int(rng.integers(3, 6)),
        int(rng.integers(60, 301)),
        float(rng.choice([0.0, 0.1])),
    )
    camera, end = Camera(rng, family, side), side * side - 1
    seen, truth, actions, rewards, lengths, ends = [], [], [], [], [], []
    for _ in range(episodes):
        cell, n = int(rng.integers(end)), 0
        seen.append(camera.look(cell))
        truth.append(cell + 1)
        while n < LONGEST and cell != end:
            action = int(rng.integers(4))
            done = int(rng.integers(4)) if rng.random() < slip else action
            cell, n = step(cell, done, side), n + 1
            seen.append(camera.look(cell))
            truth.append(0 if cell == end else cell + 1)
            actions.append(action)
            rewards.append(float(cell == end))
        lengths.append(n)
        ends.append(cell == end)
    facts = {
        "number": number,
        "family": family,
        "dimensions": PIXELS * PIXELS,
        "markov": True,
        "decided": True,
        "latent_states": len(set(truth)),
        "observations": side * side,
        "actions": 4,
        "transitions": len(actions),
        "episodes": episodes,
        "weakest_pair_nats": None,
        "parameters": {"slip": slip},
    }
    data = {
        "observations": np.array(seen)[..., None],
        "actions": np.array(actions, np.int32),
        "rewards": np.array(rewards),
        "episode_lengths": np.array(lengths),
        "terminated": np.array(ends),
        "truncated": ~np.array(ends),
        "n_actions": np.int64(4),
        "latent_states": np.array(truth, np.int32),
    }
    return facts, data


if __name__ == "__main__":
    sys.exit(command_line(__doc__, FAMILIES, instance))
