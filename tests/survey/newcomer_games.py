"""Games and puzzles: cards, dice, sticks, locks, lotteries."""

from itertools import product

from newcomer_task import End, Task, cost, prize, some


def tree(rng):
    depth, kinds = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    leaves = rng.integers(kinds, size=2**depth)
    values = [float(v) for v in rng.choice([0, 1, 2, 5, -1], kinds, replace=False)]

    def outcomes(s):
        level, at = s
        rows = []
        for a in range(2):
            to = (level + 1, 2 * at + a)
            rows.append(
                [(1.0, End(to), values[leaves[to[1]]]) if level + 1 == depth else (1.0, to, 0.0)]
            )
        return rows

    return Task([(0, 0)], 2, outcomes)


def nim(rng):
    heaps = tuple(int(x) for x in rng.integers(1, 5, size=int(rng.integers(2, 4))))
    options = [(i, k) for i in range(len(heaps)) for k in range(1, 4)]

    def taken(s, i, k):
        return (*s[:i], s[i] - k, *s[i + 1 :])

    def outcomes(s):
        rows = []
        for i, k in options:
            if s[i] < k:
                rows.append([(1.0, End(s), -2.0)])
                continue
            mine = taken(s, i, k)
            if not any(mine):
                rows.append([(1.0, End(mine), 1.0)])
                continue
            answers = [taken(mine, j, m) for j, m in options if mine[j] >= m]
            rows.append(
                [
                    (1 / len(answers), x if any(x) else End(x), 0.0 if any(x) else -1.0)
                    for x in answers
                ]
            )
        return rows

    return Task([heaps], len(options), outcomes)


def higher_lower(rng):
    n, rounds = int(rng.integers(3, 9)), int(rng.integers(1, 6))

    def outcomes(s):
        card, left = s
        rows = []
        for guess in (1, -1):
            row = []
            for c in range(n):
                win = (c - card) * guess
                r = 1.0 if win > 0 else 0.0 if win == 0 else -1.0
                row.append((1 / n, (c, left - 1) if left > 1 else End((c, 0)), r))
            rows.append(row)
        return rows

    return Task([(c, rounds) for c in range(n)], 2, outcomes)


def twenty_one(rng):
    target, ranks = int(rng.integers(6, 13)), int(rng.integers(3, 6))

    def outcomes(s):
        total, dealer = s
        hit = []
        for c in range(1, ranks + 1):
            t = total + c
            hit.append(
                (
                    1 / ranks,
                    End((t, dealer)) if t > target else (t, dealer),
                    -1.0 if t > target else 0.0,
                )
            )
        stand = []
        for c in range(1, ranks + 1):
            d = dealer + c + ranks // 2
            r = 1.0 if d > target or d < total else 0.0 if d == total else -1.0
            stand.append((1 / ranks, End((total, min(d, target + 1))), r))
        return [hit, stand]

    return Task([(t, d) for t in range(1, ranks + 1) for d in range(1, ranks + 1)], 2, outcomes)


def hanoi(rng):
    disks = int(rng.integers(2, 5))
    options = [(a, b) for a in range(3) for b in range(3) if a != b]
    reward, step, ends = prize(rng), cost(rng), rng.random() < 0.7

    def outcomes(s):
        rows = []
        for a, b in options:
            top = [min((d for d in range(disks) if s[d] == peg), default=disks) for peg in (a, b)]
            if top[0] < top[1]:
                to = (*s[: top[0]], b, *s[top[0] + 1 :])
                done = all(x == 2 for x in to)
                rows.append([(1.0, End(to) if done and ends else to, reward if done else step)])
            else:
                rows.append([(1.0, s, step)])
        return rows

    return Task([(0,) * disks], 6, outcomes)


def lights(rng):
    n = int(rng.integers(3, 8))
    circle = rng.random() < 0.5
    reward = prize(rng)

    def outcomes(s):
        rows = []
        for a in range(n):
            to = list(s)
            for i in (a - 1, a, a + 1):
                if circle or 0 <= i < n:
                    to[i % n] ^= 1
            to = tuple(to)
            rows.append([(1.0, End(to), reward) if not any(to) else (1.0, to, -0.1)])
        return rows

    first = (1,) * n
    return Task(
        [first] if rng.random() < 0.5 else [s for s in product((0, 1), repeat=n) if any(s)],
        n,
        outcomes,
    )


def jugs(rng):
    a, b = int(rng.integers(3, 6)), int(rng.integers(4, 8))
    want = int(rng.integers(1, max(a, b)))

    def outcomes(s):
        x, y = s
        m, k = min(x, b - y), min(y, a - x)
        rows = []
        for to in ((a, y), (x, b), (0, y), (x, 0), (x - m, y + m), (x + k, y - k)):
            rows.append([(1.0, End(to), 1.0) if want in to else (1.0, to, 0.0)])
        return rows

    return Task([(0, 0)], 6, outcomes)


def gambler(rng):
    n, p = int(rng.integers(6, 21)), float(rng.choice([0.4, 0.5]))
    bets = [1, 2, 5]

    def outcomes(s):
        rows = []
        for bet in bets:
            bet = min(bet, s[0], n - s[0])
            row = []
            for q, to in ((p, s[0] + bet), (1 - p, s[0] - bet)):
                row.append((q, End((to,)) if to in (0, n) else (to,), 1.0 if to == n else 0.0))
            rows.append(row)
        return rows

    return Task([(i,) for i in range(1, n)], 3, outcomes)


def pig(rng):
    goal, faces = int(rng.integers(5, 15)), int(rng.integers(3, 6))

    def outcomes(s):
        banked, turn = s
        roll = [(1 / faces, (banked, 0), 0.0)]
        for f in range(2, faces + 1):
            roll.append((1 / faces, (banked, min(goal, turn + f)), 0.0))
        total = min(goal, banked + turn)
        return [roll, [(1.0, End((total, 0)), 1.0) if total == goal else (1.0, (total, 0), -0.1)]]

    return Task([(0, 0)], 2, outcomes)


def lock(rng):
    dials, digits = int(rng.integers(2, 4)), int(rng.integers(3, 6))
    right = tuple(int(x) for x in rng.integers(digits, size=dials))
    broken, reward = rng.random() < 0.4, prize(rng)

    def outcomes(s):
        rows = []
        for d in range(dials):
            if broken and d == dials - 1:
                rows.append([(1 / digits, (*s[:d], x), 0.0) for x in range(digits)])
                continue
            to = (*s[:d], (s[d] + 1) % digits, *s[d + 1 :])
            goal = to[: dials - broken] == right[: dials - broken]
            rows.append([(1.0, End(to), reward) if goal else (1.0, to, 0.0)])
        return rows

    return Task(
        some(
            rng,
            [
                s
                for s in product(range(digits), repeat=dials)
                if s[: dials - broken] != right[: dials - broken]
            ],
        ),
        dials,
        outcomes,
    )


def cue(rng):
    """A T-maze: which end pays was shown at the beginning, and stays visible."""
    n, signs = int(rng.integers(2, 12)), int(rng.integers(2, 7))

    def outcomes(s):
        i, sign = s
        if i == n:
            return [[(1.0, End((n + 1, sign)), 1.0 if sign % 2 == a else -1.0)] for a in (0, 1)] + [
                [(1.0, s, -0.1)]
            ]
        return [[(1.0, s, 0.0)], [(1.0, s, 0.0)], [(1.0, (i + 1, sign), 0.0)]]

    return Task([(0, sign) for sign in range(signs)], 3, outcomes)


def contexts(rng):
    """Bandits with a context: one step."""
    n, actions = int(rng.integers(3, 30)), int(rng.integers(2, 6))
    kinds = int(rng.integers(1, 5))
    p = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], size=(kinds, actions))
    kind = rng.integers(kinds, size=n)

    def outcomes(s):
        return [[(float(q), End((n,)), 1.0), (1 - float(q), End((n,)), 0.0)] for q in p[kind[s[0]]]]

    return Task([(i,) for i in range(n)], actions, outcomes)


def lotteries(rng):
    """The same to be expected, by different odds."""
    n = int(rng.integers(3, 9))
    kinds = [
        [(1.0, 1.0)],
        [(0.5, 2.0), (0.5, 0.0)],
        [(0.1, 10.0), (0.9, 0.0)],
        [(1.0, 0.0)],
        [(0.5, 1.0), (0.5, -1.0)],
    ]
    kind = rng.integers(len(kinds), size=n)

    def outcomes(s):
        i = s[0]
        return [[(p, ((i + 1) % n,), r) for p, r in kinds[kind[i]]], [(1.0, ((i + 2) % n,), 0.0)]]

    return Task([(i,) for i in range(n)], 2, outcomes)


def crafting(rng):
    most = int(rng.integers(2, 5))

    def outcomes(s):
        wood, stone, tool = s
        rows = [[(0.7, (min(most, wood + 1), stone, tool), 0.0), (0.3, s, 0.0)]]
        rows.append(
            [
                (0.7 if tool else 0.1, (wood, min(most, stone + 1), tool), 0.0),
                (0.3 if tool else 0.9, s, 0.0),
            ]
        )
        rows.append([(1.0, (wood - 1, stone, 1), 1.0) if wood and not tool else (1.0, s, 0.0)])
        rows.append(
            [
                (1.0, End((wood - 1, stone - 2, tool)), 10.0)
                if wood and stone >= 2
                else (1.0, s, 0.0)
            ]
        )
        return rows

    return Task([(0, 0, 0)], 4, outcomes)


def levels(rng):
    """Copies of a game, one of which pays otherwise in one place."""
    n, copies = int(rng.integers(3, 7)), int(rng.integers(2, 7))
    to = rng.integers(n, size=(n, 3))
    r = rng.choice([0.0, 0.0, 1.0], size=(n, 3))
    odd, where = int(rng.integers(copies)), (int(rng.integers(n)), int(rng.integers(3)))
    same = rng.random() < 0.5

    def outcomes(s):
        i, k = s
        rows = []
        for a in range(3):
            pay = float(r[i, a]) + (0.5 if not same and k == odd and (i, a) == where else 0.0)
            rows.append([(1.0, (int(to[i, a]), k), pay)])
        return rows

    return Task([(i, k) for i in range(n) for k in range(copies)], 3, outcomes)
