"""Places that somebody or something moves in: mazes, rooms, lanes, boards."""

from itertools import product

import numpy as np
from newcomer_task import (
    MOVES,
    End,
    Task,
    cells_of,
    cost,
    moved,
    prize,
    slid,
    some,
    some_walls,
)


def lake(rng):
    n, slip = int(rng.integers(3, 8)), float(rng.choice([0, 0.2, 2 / 3]))
    cells = cells_of(n, n)
    holes = some_walls(rng, cells[1:-1], 0.2)
    goal, reward = (n - 1, n - 1), prize(rng)

    def after(cell):
        return End(cell) if cell in holes or cell == goal else cell

    def outcomes(s):
        rows = []
        for a in range(4):
            to = [(p, moved(s, m, n, n)) for p, m in slid(slip, MOVES, a)]
            rows.append([(p, after(c), reward if c == goal else 0.0) for p, c in to])
        return rows

    free = [c for c in cells if c not in holes and c != goal]
    return Task([(0, 0)] if rng.random() < 0.5 else some(rng, free), 4, outcomes)


def cliff(rng):
    h, w = int(rng.integers(3, 5)), int(rng.integers(5, 11))
    fall = float(rng.choice([-100, -10]))

    def outcomes(s):
        rows = []
        for m in MOVES:
            c = moved(s, m, h, w)
            if c == (h - 1, w - 1):
                rows.append([(1.0, End(c), -1.0)])
            elif c[0] == h - 1 and c[1] > 0:
                rows.append([(1.0, (h - 1, 0), fall)])
            else:
                rows.append([(1.0, c, -1.0)])
        return rows

    return Task([(h - 1, 0)], 4, outcomes)


def cab(rng):
    n = int(rng.integers(2, 5))
    cells = cells_of(n, n)
    stops = [cells[i] for i in rng.permutation(len(cells))[: int(rng.integers(2, 4))]]
    k = len(stops)

    def outcomes(s):
        r, c, p, d = s
        rows = [[(1.0, (*moved((r, c), m, n, n), p, d), -1.0)] for m in MOVES]
        rows.append(
            [(1.0, (r, c, k, d), -1.0) if p < k and stops[p] == (r, c) else (1.0, s, -10.0)]
        )
        if p == k and stops[d] == (r, c):
            rows.append([(1.0, End((r, c, d, d)), 20.0)])
        elif p == k and (r, c) in stops:
            rows.append([(1.0, (r, c, stops.index((r, c)), d), -1.0)])
        else:
            rows.append([(1.0, s, -10.0)])
        return rows

    return Task(
        [(*c, p, d) for c in cells for p in range(k) for d in range(k) if p != d], 6, outcomes
    )


def key_and_door(rng):
    h, w = int(rng.integers(2, 5)), int(rng.integers(4, 7))
    wall, gap = int(rng.integers(1, w - 1)), int(rng.integers(h))
    key = (int(rng.integers(h)), int(rng.integers(wall)))
    reward, step = prize(rng), cost(rng)

    def outcomes(s):
        r, c, has, opened = s
        closed = {(i, wall) for i in range(h) if i != gap or not opened}
        rows = []
        for m in MOVES:
            to = moved((r, c), m, h, w, closed)
            rows.append(
                [
                    (1.0, End((*to, has, opened)), reward)
                    if to == (h - 1, w - 1)
                    else (1.0, (*to, has, opened), step)
                ]
            )
        rows.append([(1.0, (r, c, 1, opened) if (r, c) == key else s, step)])
        rows.append([(1.0, (r, c, has, 1) if has and (r, c) == (gap, wall - 1) else s, step)])
        return rows

    return Task([(i, 0, 0, 0) for i in range(h)], 6, outcomes)


def rooms(rng):
    n = int(rng.choice([5, 7, 9]))
    mid, slip = n // 2, float(rng.choice([0, 0.1, 1 / 3]))
    doors = {(mid, int(rng.integers(mid))), (mid, int(rng.integers(mid + 1, n)))}
    doors |= {(int(rng.integers(mid)), mid), (int(rng.integers(mid + 1, n)), mid)}
    walls = {c for c in cells_of(n, n) if mid in c and c not in doors}
    free = [c for c in cells_of(n, n) if c not in walls]
    goal, reward, ends = free[int(rng.integers(len(free)))], prize(rng), rng.random() < 0.6

    def outcomes(s):
        rows = []
        for a in range(4):
            row = []
            for p, m in slid(slip, MOVES, a):
                c = moved(s, m, n, n, walls)
                row.append((p, End(c) if ends and c == goal else c, reward if c == goal else 0.0))
            rows.append(row)
        return rows

    return Task(some(rng, [c for c in free if c != goal]), 4, outcomes)


def teleports(rng):
    h, w = int(rng.integers(3, 7)), int(rng.integers(3, 7))
    cells = cells_of(h, w)
    order = [cells[i] for i in rng.permutation(len(cells))]
    pads = dict(zip(order[1:5:2], order[2:5:2], strict=True))
    reward = prize(rng)

    def outcomes(s):
        rows = []
        for m in MOVES:
            c = moved(s, m, h, w)
            c = pads.get(c, c)
            rows.append([(1.0, End(c), reward) if c == order[0] else (1.0, c, 0.0)])
        return rows

    return Task(some(rng, order[1:]), 4, outcomes)


def wind(rng):
    h, w = int(rng.integers(4, 7)), int(rng.integers(5, 9))
    blow = rng.integers(0, 3, w)
    gust = float(rng.choice([0, 0.3]))
    goal = (h // 2, w - 2)

    def outcomes(s):
        rows = []
        for m in MOVES:
            row = []
            for p, more in [(1 - gust, 0), (gust / 2, 1), (gust / 2, -1)]:
                r, c = moved(s, m, h, w)
                r = min(h - 1, max(0, r - int(blow[s[1]]) - (more if blow[s[1]] else 0)))
                row.append((p, End((r, c)) if (r, c) == goal else (r, c), -1.0))
            rows.append(row)
        return rows

    return Task([(h // 2, 0)], 4, outcomes)


def columns(rng):
    h, w = int(rng.integers(2, 8)), int(rng.integers(2, 7))
    drift, reward, slip = rng.dirichlet(np.ones(h), h), prize(rng), float(rng.choice([0, 0, 0.25]))

    def outcomes(s):
        r, c = s
        row = [[], [], []]
        for i in range(h):
            p = float(drift[r][i])
            right = End((i, c)) if c == w - 1 else (i, c + 1)
            row[0] += [
                (p * (1 - slip), right, reward if c == w - 1 else 0.0),
                (p * slip, (i, c), 0.0),
            ]
            row[1].append((p, (i, max(0, c - 1)), 0.0))
            row[2].append((p, (i, c), 0.0))
        return row

    return Task(some(rng, cells_of(h, w)), 3, outcomes)


def river(rng):
    n, up = int(rng.integers(4, 10)), float(rng.choice([0.3, 0.4, 0.6]))

    def outcomes(s):
        i = s[0]
        right = [
            (up, (min(n - 1, i + 1),), 1.0 if i == n - 1 else 0.0),
            (0.9 - up, (i,), 0.0),
            (0.1, (max(0, i - 1),), 0.0),
        ]
        return [[(1.0, (max(0, i - 1),), 0.005 if i == 0 else 0.0)], right]

    return Task([(0,), (1,)], 2, outcomes)


def torus(rng):
    """Only where the goal is relative to the agent matters."""
    n, walk = int(rng.integers(3, 6)), float(rng.choice([0, 0.3]))
    reward = prize(rng)

    def outcomes(s):
        r, c, gr, gc = s
        rows = []
        for dr, dc in MOVES:
            a = ((r + dr) % n, (c + dc) % n)
            row = []
            for p, (mr, mc) in [(1 - walk, (0, 0))] + [(walk / 4, m) for m in MOVES]:
                g = ((gr + mr) % n, (gc + mc) % n)
                row.append((p, End((*a, *g)) if a == g else (*a, *g), reward if a == g else 0.0))
            rows.append(row)
        return rows

    return Task([s for s in product(range(n), repeat=4) if s[:2] != s[2:]], 4, outcomes)


def distance(rng):
    """Dense rewards: minus the distance to the goal, or how much nearer."""
    h, w = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    goal = (int(rng.integers(h)), int(rng.integers(w)))
    kind = int(rng.integers(3))

    def far(c):
        d = np.abs(np.subtract(c, goal))
        return float(d.sum()) if kind == 0 else float(np.hypot(*d))

    def outcomes(s):
        rows = []
        for m in MOVES:
            c = moved(s, m, h, w)
            r = far(s) - far(c) if kind == 2 else -far(c)
            rows.append([(1.0, End(c) if c == goal else c, r)])
        return rows

    return Task(some(rng, [c for c in cells_of(h, w) if c != goal]), 4, outcomes)


def errands(rng):
    """A reward machine: coffee, then mail, then the office, in a grid, with a plant that breaks."""
    h, w = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    cells = cells_of(h, w)
    order = [cells[i] for i in rng.permutation(len(cells))]
    stages = int(rng.integers(1, 4))
    stages = min(stages, len(order) - 2)
    reward = prize(rng)
    plant = order[-1] if rng.random() < 0.4 and len(order) > stages + 2 else None

    def outcomes(s):
        r, c, u = s
        rows = []
        for m in MOVES:
            to = moved((r, c), m, h, w)
            if to == plant:
                rows.append([(1.0, End((*to, u)), -1.0 * abs(reward))])
            elif to == order[u]:
                rows.append(
                    [(1.0, End((*to, u)), reward) if u == stages else (1.0, (*to, u + 1), 0.0)]
                )
            else:
                rows.append([(1.0, (*to, u), 0.0)])
        return rows

    return Task([(*c, 0) for c in some(rng, [c for c in order if c != plant])], 4, outcomes)


def pursuit(rng):
    n = int(rng.integers(3, 5))

    def outcomes(s):
        cat, mouse = s[:2], s[2:]
        rows = []
        for m in MOVES:
            c = moved(cat, m, n, n)
            if c == mouse:
                rows.append([(1.0, End((*c, *mouse)), 1.0)])
                continue
            row = []
            for k in MOVES:
                to = moved(mouse, k, n, n)
                row.append(
                    (0.25, End((*c, *to)) if to == c else (*c, *to), 1.0 if to == c else -0.05)
                )
            rows.append(row)
        return rows

    return Task([s for s in product(range(n), repeat=4) if s[:2] != s[2:]], 4, outcomes)


def pushing(rng):
    """A box in a lane: push it onto the mark, in a room two or three wide."""
    h, w = int(rng.integers(2, 4)), int(rng.integers(4, 6))
    mark = (int(rng.integers(h)), int(rng.integers(1, w - 1)))

    def outcomes(s):
        me, box = s[:2], s[2:]
        rows = []
        for m in MOVES:
            to = moved(me, m, h, w)
            if to == box and to != me:
                pushed = moved(box, m, h, w)
                if pushed == box:
                    rows.append([(1.0, s, -0.1)])
                else:
                    done = pushed == mark
                    rows.append(
                        [
                            (
                                1.0,
                                End((*to, *pushed)) if done else (*to, *pushed),
                                10.0 if done else -0.1,
                            )
                        ]
                    )
            else:
                rows.append([(1.0, (*to, *box), -0.1)])
        return rows

    starts = [(*a, *b) for a in cells_of(h, w) for b in cells_of(h, w) if a != b and b != mark]
    return Task(starts, 4, outcomes)


def lanes(rng):
    """Three lanes, and a car ahead in one of them."""
    ahead, lanes_ = int(rng.integers(2, 6)), int(rng.integers(2, 4))

    def outcomes(s):
        lane, other, far = s
        rows = []
        for d in (-1, 0, 1):
            mine = min(lanes_ - 1, max(0, lane + d))
            pay = 1.0 - 0.2 * (d != 0)
            if far == 1:
                if mine == other:
                    rows.append([(1.0, End((mine, other, 0)), -10.0)])
                else:
                    rows.append([(1 / lanes_, (mine, o, ahead), pay) for o in range(lanes_)])
            else:
                rows.append([(1.0, (mine, other, far - 1), pay)])
        return rows

    return Task([(0, o, ahead) for o in range(lanes_)], 3, outcomes)


def catch(rng):
    h, w = int(rng.integers(4, 8)), int(rng.integers(3, 7))

    def outcomes(s):
        y, x, paddle = s
        rows = []
        for d in (-1, 0, 1):
            p = min(w - 1, max(0, paddle + d))
            to = (y + 1, x, p)
            rows.append(
                [(1.0, End(to), 1.0 if x == p else -1.0) if y + 1 == h - 1 else (1.0, to, 0.0)]
            )
        return rows

    return Task([(0, x, w // 2) for x in range(w)], 3, outcomes)


def pendulum(rng):
    n, top = int(rng.choice([8, 12, 16])), int(rng.choice([1, 2]))

    def outcomes(s):
        angle, speed = s
        rows = []
        pull = 1 if 0 < angle < n // 2 else -1 if angle > n // 2 else 0
        for a in (-1, 0, 1):
            v = min(2 * top, max(0, speed + a + pull))
            to = ((angle + v - top) % n, v)
            rows.append([(1.0, to, -(float(min(to[0], n - to[0])) ** 2) - 0.1 * abs(a))])
        return rows

    return Task([(i, top) for i in range(n)], 3, outcomes)


def mountain(rng):
    n, top = int(rng.integers(6, 14)), 2

    def outcomes(s):
        x, v = s
        rows = []
        for a in (-1, 0, 1):
            slope = 1 if x < n // 3 else -1 if x > n // 3 else 0
            u = min(2 * top, max(0, v + a + slope * (x % 2)))
            to = x + u - top
            rows.append(
                [
                    (1.0, End((n, u)), -1.0)
                    if to >= n
                    else (1.0, (max(0, to), u if to > 0 else top), -1.0)
                ]
            )
        return rows

    return Task([(n // 3, top)], 3, outcomes)


def absorbing(rng):
    """The goal is no end: nothing happens any more."""
    n = int(rng.integers(3, 8))
    pays = float(rng.choice([0, 0, 1]))

    def outcomes(s):
        x, y = s
        if (x, y) == (n - 1, 0):
            return [[(1.0, s, pays)]] * 3
        rows = []
        for dx, dy in ((1, 0), (-1, 0), (0, 1)):
            to = (min(n - 1, max(0, x + dx)), (y + dy) % 3)
            rows.append([(1.0, to, 1.0 if to == (n - 1, 0) else 0.0)])
        return rows

    return Task([(0, y) for y in range(3)], 3, outcomes)


def snakes(rng):
    """A board with snakes and ladders, and two dice to choose from."""
    n = int(rng.integers(10, 40))
    jump = {
        int(a): int(b)
        for a, b in zip(rng.permutation(n - 2)[:4] + 1, rng.permutation(n - 2)[:4] + 1, strict=True)
    }
    dice = [[1, 2, 3, 4], [1, 1, 6, 6]]

    def outcomes(s):
        rows = []
        for die in dice:
            row = []
            for f in die:
                to = s[0] + f
                to = jump.get(to, to)
                row.append(
                    (
                        1 / len(die),
                        End((n - 1,)) if to >= n - 1 else (to,),
                        1.0 if to >= n - 1 else 0.0,
                    )
                )
            rows.append(row)
        return rows

    return Task([(0,)], 2, outcomes)
