"""psifold quotient and psifold plan on models, as users call them."""

import gzip
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import warnings
import zipfile

PSIFOLD = os.environ["PSIFOLD"]
HEAD = "@type: MDP\n@parameters\n\n@reward_models\ngain\n@nr_states\n{}\n@model\n"


def run(*arguments):
    return subprocess.run([PSIFOLD, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)


def read_npy(path):
    bytes_ = path.read_bytes()
    begin = 10 + struct.unpack("<H", bytes_[8:10])[0]
    assert b"<i4" in bytes_[:begin], bytes_[:begin]
    return list(struct.unpack(f"<{(len(bytes_) - begin) // 4}i", bytes_[begin:]))


def two_copies(noise=0.0, gain=1.0):
    """States 0 and 1 go left or right with equal odds, but for noise; only the right is worth
    something, and it is where label "goal" holds."""
    text = HEAD.format(4)
    for state, p in ((0, 0.5), (1, 0.5 + noise)):
        text += f"state {state} [0]{' init' if state == 0 else ''}\n\taction go [0]\n"
        text += f"\t\t2 : {1 - p!r}\n\t\t3 : {p!r}\n"
    text += "state 2 [0]\n\taction stay [0]\n\t\t2 : 1\n"
    return text + f"state 3 [{gain}] goal\n\taction stay [0]\n\t\t3 : 1\n"


class Models(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="psifold-test-")
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def write(self, text, name="model.drn"):
        path = self.path / name
        path.write_text(text)
        return path

    def succeed(self, *arguments):
        result = run(*arguments, "--json", "--quiet")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refuse(self, code, sentence, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        lines = [line for line in result.stderr.splitlines() if line.startswith("psifold: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(sentence, lines[0])

    def test_what_is_kept_apart(self):
        model = self.write(two_copies())
        blocks = self.path / "blocks.npy"
        found = self.succeed("quotient", model, "--blocks", blocks)
        self.assertEqual((found["states"], found["blocks"], found["defect"]), (4, 3, 0))
        for key in ("seconds", "processor_seconds", "bytes", "passes", "rounds", "settled"):
            self.assertGreaterEqual(found[key], 0, key)
        self.assertEqual(read_npy(blocks), [0, 0, 1, 2])
        for options, expected in (
                (("--labels", ""), 3), (("--rewards", "none"), 3), (("--rewards", "gain"), 3),
                (("--labels", "", "--rewards", "none"), 2),  # the two actions are left
                (("--labels", "", "--rewards", "none", "--no-action-identity"), 1),
                (("--labels", "init,goal"), 4), (("--epsilon", "1e-7"), 3)):
            found = self.succeed("quotient", model, *options)
            self.assertEqual(found["blocks"], expected, options)
        printed = run("quotient", model).stdout
        self.assertIn("every signature was compared", printed)
        self.assertIn("by successor features", run("quotient", model, "--epsilon", "1e-7").stdout)

    def test_tolerance_and_its_defect(self):
        model = self.write(two_copies(noise=1e-4))
        self.assertEqual(self.succeed("quotient", model)["blocks"], 4)
        found = self.succeed("quotient", model, "--tolerance", "1e-2")
        self.assertEqual(found["blocks"], 3)
        self.assertAlmostEqual(found["defect"], 1e-4)
        found = self.succeed("quotient", model, "--epsilon", "1e-2")
        self.assertEqual(found["blocks"], 3)
        self.assertAlmostEqual(found["defect"], 1e-4)
        self.refuse(2, "one at a time", "quotient", model, "--epsilon", 0.1, "--tolerance", 0.1)
        self.refuse(2, "tolerance", "quotient", model, "--tolerance", 2)

    def test_every_format_says_the_same(self):
        model = self.write(two_copies())
        for name in ("small.drn", "small.umb", "small.tra", "small.json", "small.npz"):
            small = self.path / name
            self.succeed("quotient", model, "-o", small)
            again = self.succeed("quotient", small)
            self.assertEqual((again["states"], again["blocks"]), (3, 3), name)
            if name != "small.json":  # Gymnasium's tables have no labels
                plan = self.succeed("plan", small, "--reach", "goal")
                self.assertAlmostEqual(plan["initial"][0]["lower"], 0.5, msg=name)
            plan = self.succeed("plan", small, "--gamma", 0.5, "--precision", 1e-9)
            self.assertAlmostEqual(plan["initial"][0]["lower"], 0.5, 6, msg=name)
        self.refuse(2, "small.txt", "quotient", model, "-o", self.path / "small.txt")

    def test_bad_models_get_one_sentence(self):
        good = two_copies()
        for text, code, sentence in (
                (good.replace("3 : 0.5", "3 : 0.25"), 6, "sum to 0.75"),
                (good.replace("3 : 0.5", "7 : 0.5"), 5, "a transition to state 7 of a model of 4"),
                (good.replace("state 1", "state 0"), 5, "state 0 is declared twice"),
                (good.replace("\n4\n", "\n1000000000000\n"), 5, "1000000000000 states"),
                (good.replace("\n4\n", "\n5\n"), 5, "5 states are announced"),
                ("", 5, "is not a model")):
            for command in ("quotient", "plan"):
                self.refuse(code, sentence, command, self.write(text))
        umb = self.path / "whole.umb"
        self.succeed("quotient", self.write(good), "-o", umb)
        bytes_ = umb.read_bytes()
        bytes_ = gzip.decompress(bytes_) if bytes_[:2] == b"\x1f\x8b" else bytes_
        cut = self.path / "cut.umb"
        cut.write_bytes(bytes_[:len(bytes_) // 2])
        self.refuse(5, "cut", "quotient", cut)
        self.refuse(2, "no label 'nowhere'", "quotient", self.write(good), "--labels", "nowhere")
        self.refuse(2, "no reward 'loss'", "quotient", self.write(good), "--rewards", "loss")
        self.refuse(4, "none.drn", "quotient", self.path / "none.drn")

    def test_two_of_one_name(self):
        """Labels, rewards and arrays of an .npz: nobody could say which is meant."""
        good, bad = self.path / "good.npz", self.path / "bad.npz"
        self.succeed("quotient", self.write(two_copies()), "-o", good)
        with zipfile.ZipFile(good) as archive:
            arrays = {name: archive.read(name) for name in archive.namelist()}
        text = arrays["names.npy"][128:]
        names = json.loads(text)

        def pack(more=(), **changed):
            words = json.dumps({**names, **changed}).encode()
            header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(words)},), }}"
            header = (header + " " * (117 - len(header)) + "\n").encode()
            with zipfile.ZipFile(bad, "w") as archive:
                for name, bytes_ in [*arrays.items(), *more]:
                    archive.writestr(name, bytes_ if name != "names.npy" else
                                     arrays[name][:10] + header + words)

        pack()
        self.succeed("quotient", bad)
        label, reward = names["labels"][0], names["rewards"][0]
        for command in ("quotient", "plan"):
            pack(labels=[label, label])
            self.refuse(5, f"two labels are called '{label}'", command, bad)
            pack(rewards=[reward, reward])
            self.refuse(5, f"two rewards are called '{reward}'", command, bad)
            pack(rewards=[3])
            self.refuse(5, "a reward has no name", command, bad)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # zipfile's own, about this
                pack(more=[("next.npy", arrays["next.npy"])])
            self.refuse(5, "next.npy: there are two of that name", command, bad)

    def test_a_folder_that_is_no_run(self):
        data = self.path / "set"
        run("generate", "column-world", "--episodes", 3, "-o", data)
        other = self.path / "other"
        other.mkdir()
        for command in ("quotient", "plan"):
            self.refuse(5, "is a data set as Minari writes them, and no run: psifold cluster", command, data)
            self.refuse(5, "is no run, as psifold cluster leaves one", command, other)
            self.refuse(4, "none", command, self.path / "none")

    def test_an_npz_that_is_no_model(self):
        data = self.path / "data.npz"
        run("generate", "point-column-world", "--episodes", 3, "-o", data)
        for command in ("quotient", "plan", "report"):
            self.refuse(5, "is not a model: it seems to hold trajectories", command, data)
        for option in (["--reach", "goal"], ["--reward", "gain"], ["--minimise"], ["-o", "plan.npz"]):
            self.refuse(2, "is a run folder", "plan", self.path, *option)
        plan = self.path / "plan.npz"
        self.succeed("plan", self.write(two_copies()), "--gamma", 0.5, "-o", plan)
        self.refuse(5, "is not a model", "quotient", plan)


if __name__ == "__main__":
    unittest.main()
