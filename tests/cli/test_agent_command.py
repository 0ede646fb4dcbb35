"""psifold agent and psifold reproduce as users call them."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

PSIFOLD = os.environ["PSIFOLD"]
TRUTH_RUN = os.environ["PSIFOLD_TRUTH_RUN"]


def run(*arguments):
    return subprocess.run([PSIFOLD, *map(str, arguments)], capture_output=True, text=True,
                          timeout=240)


class Agents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="psifold-test-")
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def succeed(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refuse(self, code, sentence, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        self.assertIn(sentence, result.stderr)

    def scores(self, *arguments):
        found = json.loads(self.succeed("agent", *arguments, "--json").stdout)
        return found, [one["reward_per_step"] for one in found["runs"]]

    def test_scores_do_not_depend_on_threads_or_company(self):
        task = ("column-world", "--kind", "tabular", "--episodes", "30")
        found, three = self.scores(*task, "--seeds", "3", "--threads", "2")
        self.assertAlmostEqual(found["optimum"]["reward_per_step"], 1 / 3)
        self.assertEqual(len(three), 3)
        self.assertEqual(self.scores(*task, "--seeds", "3", "--threads", "1")[1], three)
        self.assertEqual(self.scores(*task, "--seed", "2")[1], three[2:])
        low, high = found["reward_per_step"]["low"], found["reward_per_step"]["high"]
        self.assertTrue(low <= found["reward_per_step"]["estimate"] <= high)

    def test_a_folder_keeps_curves_and_results(self):
        task = ("column-world", "--kind", "planner", "--view", "truth", "--episodes", "20",
                "--seeds", "2", "-o", self.path / "out")
        first = self.scores(*task)[1]
        for seed in ("seed-0", "seed-1"):
            lines = (self.path / "out" / seed / "curve.csv").read_text().splitlines()
            self.assertEqual(len(lines), 21)
            self.assertEqual(lines[0].split(",")[:4], ["episode", "steps", "total_steps", "reward"])
            self.assertTrue((self.path / "out" / seed / "events.out.tfevents.psifold").exists())
            self.assertFalse((self.path / "out" / seed / "checkpoint").exists())
        stamp = (self.path / "out/seed-0/result.json").stat().st_mtime_ns
        self.assertEqual(self.scores(*task)[1], first)  # read, not played again
        self.assertEqual((self.path / "out/seed-0/result.json").stat().st_mtime_ns, stamp)
        self.refuse(2, "with other options", "agent", *task, "--gamma", "0.5")

    def test_a_stopped_agent_goes_on(self):
        # long enough to be caught in the middle; one that is not stopped gives the same
        task = ("column-world", "--kind", "tabular", "--episodes", "20000", "--max-steps", "50")
        process = subprocess.Popen([PSIFOLD, "agent", *task, "-o", str(self.path / "a"), "-q"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
        if process.returncode != 0:  # it may have been faster than us
            self.assertEqual(process.returncode, 130)
            self.assertIn("stopped on request", error)
            self.assertFalse((self.path / "a/seed-0/result.json").exists())
        self.succeed("agent", *task, "-o", self.path / "a")
        self.succeed("agent", *task, "-o", self.path / "b")
        self.assertEqual((self.path / "a/seed-0/curve.csv").read_bytes(),
                         (self.path / "b/seed-0/curve.csv").read_bytes())

    def test_what_makes_no_sense_is_refused(self):
        self.refuse(2, "takes dqn|", "agent", "column-world", "--kind", "sarsa")
        self.refuse(10, "representation", "agent", "column-world", "--kind", "planner")
        self.refuse(2, "gamma", "agent", "column-world", "--kind", "tabular", "--gamma", "1")
        self.refuse(2, "at least 1", "agent", "column-world", "--seeds", "0")
        self.refuse(2, "needs to know what", "reproduce", "everything", "-o", self.path / "x")
        self.refuse(4, "", "agent", "column-world", "--kind", "planner", "--run", "/nowhere")

    def test_the_transfer_study_in_small(self):
        subprocess.run([TRUTH_RUN, "combination-lock", self.path / "run", "cnn", "4", "5",
                        "images-per-digit", "4"], check=True, stdout=subprocess.DEVNULL)
        study = ("reproduce", "transfer", "--run", self.path / "run", "--digits", "drawn",
                 "--seeds", "2", "--episodes", "1", "-o", self.path / "study", "-q")
        self.succeed(*study)
        scores = json.loads((self.path / "study/transfer/quick/scores.json").read_text())
        agents = {"dqn", "pretrained", "reward-predictive", "planner", "tabular", "random"}
        self.assertEqual(set(scores["reward_per_step"]),
                         {"train", "swap-digits", "reversed-dial", "left-dial-broken"})
        for task, by_agent in scores["reward_per_step"].items():
            self.assertEqual(set(by_agent), agents - ({"pretrained"} if task == "train" else set()))
            for values in by_agent.values():
                self.assertEqual(len(values), 2)
        self.assertAlmostEqual(scores["optimum"]["swap-digits"], 1 / 12)
        self.assertEqual(len(scores["statistics"]["claims"]), 10)
        manifest = json.loads((self.path / "study/transfer/quick/manifest.json").read_text())
        self.assertEqual((manifest["scale"], manifest["seeds"]), ("quick", 2))
        curves = (self.path / "study/transfer/quick/curves.csv").read_bytes()
        # a trial that is lost is played again, the others are not, and nothing changes
        for name in ("result.json", "curve.csv"):
            (self.path / "study/transfer/quick/runs/swap-digits/planner/seed-1" / name).unlink()
        self.succeed(*study)
        again = json.loads((self.path / "study/transfer/quick/scores.json").read_text())
        self.assertEqual(again["reward_per_step"], scores["reward_per_step"])
        self.assertEqual((self.path / "study/transfer/quick/curves.csv").read_bytes(), curves)


if __name__ == "__main__":
    unittest.main()
