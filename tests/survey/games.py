"""OpenSpiel: what a game does between two decisions of its first player is found by going through
it."""

import numpy as np
import pyspiel
from wrapped import Task


class Spiel(Task):
    """A game as its first player sees it; others play at random (opponent: random), or always the
    first action that is allowed (first). What is not allowed costs 1 and changes nothing, or is
    never tried (legal). Where information is hidden, a state is what the player knows: the states
    that the game may be in, weighed by chance and by the others' actions, found by going through
    the whole game."""

    limit = 200

    def __init__(
        self, name, transitions, game, opponent="random", show="tensor", legal=False, timed=False
    ):
        self.name, self.transitions, self.show, self.legal = name, transitions, show, legal
        self.timed = timed
        self.game = pyspiel.load_game(game)
        self.opponent = opponent
        kind = self.game.get_type()
        alone = (
            self.game.num_players() == 1
            and kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
        )
        self.knows = alone or kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        self.told = kind.provides_observation_tensor
        self.n_actions = self.game.num_distinct_actions()
        self.numbers, self.beliefs = {}, {}
        if not self.knows:
            self.go_through(self.game.new_initial_state(), 1.0)

    def go_through(self, state, weight):
        if state.is_terminal():
            return
        if state.current_player() == 0:
            self.beliefs.setdefault(state.information_state_string(0), []).append(
                (weight, state.clone())
            )
            steps = [(1.0, action) for action in state.legal_actions()]
        else:
            steps = self.others(state)
        for probability, action in steps:
            self.go_through(state.child(action), weight * probability)

    def others(self, state):
        """What chance and the other players do: (probability, action)."""
        if state.is_chance_node():
            return [(probability, action) for action, probability in state.chance_outcomes()]
        actions = state.legal_actions()
        return (
            [(1.0, actions[0])]
            if self.opponent == "first"
            else [(1 / len(actions), a) for a in actions]
        )

    def settle(self):
        """Until the player has something to decide."""
        while not self.state.is_terminal() and self.state.current_player() != 0:
            steps = self.others(self.state)
            chosen = self.rng.choice(len(steps), p=[probability for probability, _ in steps])
            self.state.apply_action(steps[chosen][1])

    def reset(self):
        self.state = self.game.new_initial_state()
        self.settle()

    def choose(self, rng):
        actions = self.state.legal_actions() if self.legal else range(self.n_actions)
        return int(rng.choice(actions))

    def step(self, action):
        if action not in self.state.legal_actions():
            return -1.0, False
        before = self.state.player_return(0)
        self.state.apply_action(action)
        self.settle()
        return float(self.state.player_return(0) - before), self.state.is_terminal()

    def name_of(self, state):
        if not self.knows:
            return state.information_state_string(0)
        key = f"{state} {state.move_number()}" if self.timed else str(state)
        self.beliefs.setdefault(key, [(1.0, state.clone())])
        return key

    def key(self):
        return self.name_of(self.state)

    def looks(self):
        return str(self.state) if self.knows or self.state.is_terminal() else self.key()

    def observe(self):
        if self.show == "number":
            return np.int64(self.numbers.setdefault(self.looks(), len(self.numbers)))
        if self.show == "hidden" or (self.knows and self.told):
            flat, shape = self.state.observation_tensor(0), self.game.observation_tensor_shape()
        else:
            flat, shape = (
                self.state.information_state_tensor(0),
                self.game.information_state_tensor_shape(),
            )
        image = np.array(flat, np.float32).reshape(shape)
        return image.astype(np.uint8) if self.show == "bytes" else image

    def follow(self, state, probability, before):
        """Every way in which it can go on until the player decides again: (probability, key,
        reward)."""
        if state.is_terminal():
            return [(probability, None, float(state.player_return(0) - before))]
        if state.current_player() == 0:
            return [(probability, self.name_of(state), float(state.player_return(0) - before))]
        return [
            outcome
            for chance, action in self.others(state)
            for outcome in self.follow(state.child(action), probability * chance, before)
        ]

    def outcomes(self, key):
        total = sum(weight for weight, _ in self.beliefs[key])
        rows = [[] for _ in range(self.n_actions)]
        for weight, state in self.beliefs[key]:
            allowed = set(state.legal_actions())
            for action, row in enumerate(rows):
                if action in allowed:
                    row += self.follow(state.child(action), weight / total, state.player_return(0))
                else:
                    row.append((weight / total, key, -1.0))
        return rows
