"""How states are shown: the space of an observation, and small pictures of toy-text states.

The pictures are drawn from the state alone. Gymnasium's own depend on the last action (which way
the elf looks), and are large.
"""

import gymnasium as gym
import numpy as np

CELL = 4
FROZEN_LAKE = {
    b"S": (200, 230, 255),
    b"F": (170, 210, 250),
    b"H": (20, 40, 90),
    b"G": (250, 220, 90),
}
LANDMARKS = [(255, 0, 0), (0, 255, 0), (255, 255, 0), (0, 0, 255)]


def box(observations):
    """The space of these arrays: bytes are 0 to 255, everything else is unbounded."""
    low, high = (0, 255) if observations.dtype == np.uint8 else (-np.inf, np.inf)
    return gym.spaces.Box(low, high, observations.shape[1:], observations.dtype.type)


def paint(cells):
    """An image with CELL pixels for each cell."""
    return np.repeat(np.repeat(np.asarray(cells, np.uint8), CELL, 0), CELL, 1)


def dot(image, row, column, colour, inset=1):
    """A square inside the cell."""
    image[
        row * CELL + inset : (row + 1) * CELL - inset,
        column * CELL + inset : (column + 1) * CELL - inset,
    ] = colour


def frozen_lake(env, state):
    image = paint([[FROZEN_LAKE[letter] for letter in row] for row in env.desc])
    dot(image, *divmod(state, env.ncol), (220, 60, 60))
    return image


def cliff(env, state):
    cells = np.full((*env.shape, 3), (120, 170, 90))
    cells[env._cliff] = (90, 60, 40)
    cells[-1, -1] = (250, 220, 90)
    image = paint(cells)
    dot(image, *divmod(state, env.shape[1]), (220, 60, 60))
    return image


def taxi(env, state):
    """Landmarks in their colours; the destination has a black upper edge, a waiting passenger is a
    white lower edge, and the taxi is orange, or pink with the passenger inside."""
    row, column, passenger, destination = env.decode(state)
    image = paint(np.full((5, 5, 3), 128))
    for r in range(5):
        for c in range(4):
            if env.desc[1 + r, 2 * c + 2] == b"|":
                image[r * CELL : (r + 1) * CELL, (c + 1) * CELL - 1] = 0
    for (r, c), colour in zip(env.locs, LANDMARKS, strict=True):
        dot(image, r, c, colour, inset=0)
    r, c = env.locs[destination]
    image[r * CELL, c * CELL : (c + 1) * CELL] = 0
    if passenger < 4:
        r, c = env.locs[passenger]
        image[(r + 1) * CELL - 1, c * CELL : (c + 1) * CELL] = 255
    dot(image, row, column, (255, 130, 0) if passenger < 4 else (255, 0, 180))
    return image
