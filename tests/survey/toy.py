"""Gymnasium's toy text: every one of these tasks has an exact table, or rules short enough to write
down."""

import gymnasium as gym
import numpy as np
from shows import box
from truth import explore

NOISE, DIMENSIONS, LOOKS = 0.05, 8, 2


class ToyText:
    """A task with a table env.P. With starts, episodes begin in any state that can be reached: from
    the fixed start a random walk sees the far end of FrozenLake 8x8 a handful of times."""

    def __init__(
        self,
        name,
        transitions,
        env_id,
        starts=False,
        show="index",
        limit=None,
        draw=None,
        **options,
    ):
        self.name, self.transitions, self.starts, self.show = name, transitions, starts, show
        self.env = gym.make(env_id, **options).unwrapped
        self.limit = limit or gym.spec(env_id).max_episode_steps
        self.n_actions = int(self.env.action_space.n)
        self.draw, self.pictures = draw, {}
        self.fickle = options.get("fickle_passenger", False)
        self.first = [self.named(int(s)) for s in np.flatnonzero(self.env.initial_state_distrib)]

    def named(self, s, armed=None):
        """A fickle passenger decides at the start, which the observation does not show."""
        return (s, bool(armed)) if self.fickle else s

    def begin(self, rng):
        self.rng = rng
        self.env.reset(seed=int(rng.integers(2**31)))
        self.inner = sorted(self.model([]))
        count = self.env.observation_space.n
        self.looks = rng.normal(size=(LOOKS, count, DIMENSIONS))

    def reset(self):
        self.env.reset()
        if self.starts:
            self.env.s = self.inner[self.rng.integers(len(self.inner))]

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(action)
        return float(reward), bool(terminated)

    def key(self):
        return self.named(int(self.env.s), self.env.fickle_step if self.fickle else None)

    def observe(self):
        s = int(self.env.s)
        if self.show == "index":
            return np.int64(s)
        if self.show == "noisy":
            look = self.looks[self.rng.integers(LOOKS), s]
            return (look + NOISE * self.rng.normal(size=DIMENSIONS)).astype(np.float32)
        if s not in self.pictures:
            self.pictures[s] = self.draw(self.env, s)
        return self.pictures[s]

    def space(self, observations):
        return self.env.observation_space if self.show == "index" else box(observations)

    def outcomes(self, key):
        s, armed = key if self.fickle else (key, False)
        rows = []
        for action in range(self.n_actions):
            row = []
            for probability, after, reward, terminated in self.env.P[s][action]:
                if terminated:
                    row.append((probability, None, reward))
                elif armed and self.changes_mind(s, after):
                    *where, destination = self.env.decode(after)
                    others = [d for d in range(4) if d != destination]
                    row += [
                        (probability / 3, (self.env.encode(*where, d), False), reward)
                        for d in others
                    ]
                else:
                    row.append((probability, self.named(int(after), armed), reward))
            rows.append(row)
        return rows

    def changes_mind(self, s, after):
        """The taxi has moved with the passenger inside."""
        before, now = self.env.decode(s), self.env.decode(after)
        return before[2] == 4 and before[:2] != now[:2]

    def model(self, _keys):
        starts = (
            [(s, armed) for s, _ in self.first for armed in (False, True)]
            if self.fickle
            else self.first
        )
        return explore(starts, self.outcomes)


class Blackjack:
    """Sum, the dealer's card, usable ace. The deck is infinite, so these are the whole state,
    except by the rules of Sutton and Barto (sab), where 21 from two cards is more than 21 from
    three: hidden."""

    limit = 100

    def __init__(self, name, transitions, sab):
        self.name, self.transitions, self.sab = name, transitions, sab
        self.env = gym.make("Blackjack-v1", sab=sab, natural=False).unwrapped
        self.n_actions = 2

    def begin(self, rng):
        self.env.reset(seed=int(rng.integers(2**31)))

    def reset(self):
        self.env.reset()

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(action)
        return float(reward), bool(terminated)

    def key(self):
        return (
            *self.env._get_obs(),
            self.sab and len(self.env.player) == 2 and self.env._get_obs()[0] == 21,
        )

    def observe(self):
        return np.array(self.env._get_obs(), np.int64)

    def space(self, _observations):
        return gym.spaces.MultiDiscrete([32, 11, 2])

    def model(self, keys):
        return explore(keys, self.outcomes)

    def outcomes(self, key):
        total, dealer, ace, natural = key
        stick = {1: 0.0, 0: 0.0, -1: 0.0}
        for theirs, probability in self.dealers(dealer).items():
            their_natural = theirs == "natural"
            theirs = 21 if their_natural else theirs
            won = (total > theirs) - (total < theirs)
            stick[1 if natural and not their_natural else won] += probability
        hit = []
        for card in range(1, 11):
            after, soft = total + card, ace
            if card == 1 and not ace and after + 10 <= 21:
                after, soft = after + 10, 1
            if after > 21 and soft:
                after, soft = after - 10, 0
            probability = (4 if card == 10 else 1) / 13
            hit.append(
                (probability, None, -1.0)
                if after > 21
                else (probability, (after, dealer, soft, False), 0.0)
            )
        return [[(probability, None, float(reward)) for reward, probability in stick.items()], hit]

    def dealers(self, shown):
        """Where the dealer ends: a sum from 17 to 21, 0 for a bust, or a natural."""
        found = {}

        def go(low, has_ace, cards, probability):
            soft = has_ace and low + 10 <= 21
            total = low + 10 if soft else low
            if cards >= 2 and total >= 17:
                end = "natural" if cards == 2 and total == 21 else total if total <= 21 else 0
                found[end] = found.get(end, 0.0) + probability
                return
            for card in range(1, 11):
                go(
                    low + card,
                    has_ace or card == 1,
                    cards + 1,
                    probability * (4 if card == 10 else 1) / 13,
                )

        go(shown, shown == 1, 1, 1.0)
        return found
