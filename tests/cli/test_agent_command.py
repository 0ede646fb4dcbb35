"""psifold agent and psifold reproduce as users call them."""

import html
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PSIFOLD = os.environ["PSIFOLD"]
TRUTH_RUN = os.environ["PSIFOLD_TRUTH_RUN"]


def run(*arguments, **variables):
    return subprocess.run([PSIFOLD, *map(str, arguments)], capture_output=True, text=True,
                          timeout=900, env={**os.environ, **variables})


def blocks(path):
    """The parts of a figure's data: lists of rows of numbers; words are left out."""
    parts = path.read_text().split("\n\n\n")
    return [[[float(word) for word in line.split() if not word.startswith('"')]
             for line in part.splitlines() if line and not line.startswith("#")]
            for part in parts]


class Agents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="psifold-test-")
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def succeed(self, *arguments, **variables):
        result = run(*arguments, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refuse(self, code, sentence, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        self.assertIn(sentence, result.stderr)

    def scores(self, *arguments):
        found = json.loads(self.succeed("agent", *arguments, "--json").stdout)
        return found, [one["reward_per_step"] for one in found["runs"]]

    def test_scores_do_not_depend_on_threads_or_other_agents(self):
        task = ("column-world", "--kind", "tabular", "--episodes", "30")
        found, three = self.scores(*task, "--seeds", "3", "--threads", "2")
        self.assertAlmostEqual(found["optimum"]["reward_per_step"], 1 / 3)
        self.assertEqual(len(three), 3)
        self.assertEqual(self.scores(*task, "--seeds", "3", "--threads", "1")[1], three)
        self.assertEqual(self.scores(*task, "--seed", "2")[1], three[2:])
        low, high = found["reward_per_step"]["low"], found["reward_per_step"]["high"]
        self.assertTrue(low <= found["reward_per_step"]["estimate"] <= high)

    def test_those_who_share_a_network_do_not_notice(self):
        self.make_run(self.path / "run")
        task = ("combination-lock", "--digits-per-dial", "3", "--images-per-digit", "4", "--kind",
                "planner", "--run", self.path / "run", "--episodes", "10", "--max-steps", "100")
        all_on_one = self.scores(*task, "--seeds", "5", "--threads", "1")[1]
        self.assertEqual(self.scores(*task, "--seeds", "5", "--threads", "2")[1], all_on_one)
        self.assertEqual(self.scores(*task, "--seeds", "5", "--wide", "--threads", "2")[1],
                         all_on_one)
        self.assertEqual(self.scores(*task, "--seed", "3")[1], all_on_one[3:4])

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
        self.refuse(2, "with another gamma", "agent", *task, "--gamma", "0.5")

    def test_a_result_counts_for_what_it_was_made_with_only(self):
        task = ("column-world", "--kind", "planner", "--view", "truth", "--episodes", "5",
                "--truth-of", "episodic", "-o", self.path / "out")
        first = self.scores(*task)[1]
        self.refuse(2, "with another evaluation", "agent", *task, "--evaluate", "3")
        self.refuse(2, "with another truth_of", "agent", *task, "--truth-of", "continuing")
        self.assertEqual(self.scores(*task)[1], first)
        # the network that learning starts from is part of it, not the name of its file
        lock = ("combination-lock", "--digits-per-dial", "3", "--images-per-digit", "4",
                "--max-steps", "30", "--episodes", "2")
        for seed in ("0", "1"):
            self.succeed("agent", *lock, "--kind", "dqn", "--seed", seed, "-o", self.path / "dqn")
        networks = [self.path / f"dqn/seed-{seed}/network.safetensors" for seed in (0, 1)]
        start = self.path / "start.safetensors"
        shutil.copy(networks[0], start)
        pretrained = ("agent", *lock, "--kind", "pretrained", "--start-from", start, "-o",
                      self.path / "pretrained")
        self.succeed(*pretrained)
        shutil.copy(networks[1], start)
        self.refuse(2, "with another start", *pretrained)
        # without a file, what is learnt first
        self.refuse(2, "with another pretraining", *pretrained[:-4], "-o", self.path / "pretrained")
        # a trial that was stopped is not gone on with as another one
        (self.path / "out/seed-0/result.json").unlink()
        self.refuse(2, "with another evaluation", "agent", *task, "--evaluate", "3")

    def test_a_planner_explores_if_it_is_told_to(self):
        task = ("column-world", "--kind", "planner", "--view", "truth", "--episodes", "10")
        told, usual = self.scores(*task, "--explore", "10")[1], self.scores(*task)[1]
        self.assertEqual(self.scores(*task, "--explore", "0")[1], usual)
        self.assertNotEqual(told, usual)

    def test_a_stopped_agent_goes_on(self):
        # long enough to be caught in the middle; one that is not stopped gives the same
        task = ("column-world", "--kind", "tabular", "--episodes", "100000", "--max-steps", "50")
        process = subprocess.Popen([PSIFOLD, "agent", *task, "-o", str(self.path / "a"), "-q"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
        if process.returncode != 0:  # it may have been faster than us
            self.assertEqual(process.returncode, 130)
            self.assertIn("stopped on request", error)
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

    def make_run(self, folder):
        """A perfect clustering of a lock with three digits on a dial."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([TRUTH_RUN, "combination-lock", folder, "cnn", "4", "5", "digits-per-dial",
                        "3", "images-per-digit", "4"], check=True, stdout=subprocess.DEVNULL)

    def load(self, *names):
        return json.loads(self.path.joinpath(*names).read_text())

    def check_words(self, page, results):
        """Everything that a study says is on its page."""
        shown = html.unescape(page.read_text())
        words = [results["title"], *(figure["caption"] for figure in results["figures"])]
        for claim in results["claims"]:
            words += [claim["claim"], claim["paper"], claim["ours"]]
        self.assertEqual([word for word in words if word not in shown], [])

    def check_page(self, folder, results):
        self.check_words(folder / "index.html", results)
        for figure in results["figures"]:
            for ending in (".svg", "-dark.svg", ".png", ".dat", ".gp"):
                self.assertGreater((folder / (figure["name"] + ending)).stat().st_size, 100)
        for claim in results["claims"]:
            self.assertIs(type(claim["holds"]), bool)
            self.assertIn(f"{results['seeds']} seeds", claim["ours"])
        for file in results["files"]:
            self.assertTrue((folder / file["name"]).exists(), file["name"])

    def check_bars(self, blocks, scores):
        """Bars and dots of a figure of scores: groups of series of seeds, None where none was."""
        for series in range(len(scores[0])):
            dots = []
            for group, bar in zip(scores, blocks[2 * series]):
                if group[series] is None:
                    self.assertTrue(math.isnan(bar[1]))
                    continue
                self.assertAlmostEqual(bar[1], sum(group[series]) / len(group[series]), places=7)
                dots += group[series]
            for drawn, score in zip(blocks[2 * series + 1], dots, strict=True):
                self.assertAlmostEqual(drawn[1], score, places=7)

    def test_the_transfer_study_in_small(self):
        self.make_run(self.path / "run")
        study = ("reproduce", "transfer", "--run", self.path / "run", "--digits-per-dial", "3",
                 "--episodes", "3", "-o", self.path / "study")
        # where MNIST was not fetched, digits are drawn
        output = self.succeed(*study, "--seeds", "2", PSIFOLD_CACHE=str(self.path)).stdout
        self.assertIn("MNIST was not fetched", output)
        folder = self.path / "study/transfer/quick"
        scores, results = self.load(folder, "scores.json"), self.load(folder, "results.json")
        agents = ["dqn", "pretrained", "reward-predictive", "planner", "tabular", "random"]
        tasks = ["train", "swap-digits", "reversed-dial", "left-dial-broken"]
        self.assertEqual(list(scores["reward_per_step"]), tasks)
        for task, by_agent in scores["reward_per_step"].items():
            self.assertEqual(set(by_agent),
                             set(agents) - ({"pretrained"} if task == "train" else set()))
            for values in by_agent.values():
                self.assertEqual(len(values), 2)
        self.assertAlmostEqual(scores["optimum"]["swap-digits"], 1 / 5)
        manifest = self.load(folder, "manifest.json")
        self.assertEqual((manifest["scale"], manifest["seeds"], manifest["digits"]),
                         ("quick", 2, "drawn"))

        # the order of three agents and the planner in three tasks, and where the gain is largest
        self.check_page(folder, results)
        self.assertEqual(len(results["claims"]), 13)
        self.assertEqual([claim["holds"] for claim in results["claims"]],
                         [claim["holds"] for claim in scores["statistics"]["claims"]])
        for claim, told in zip(results["claims"], scores["statistics"]["claims"]):
            self.assertIn(claim["claim"], told["claim"])
            if "beats" in claim["claim"]:
                self.assertEqual(claim["holds"], told["evidence"]["low"] > 0.5)

        # figures show what scores.json says
        self.assertEqual([figure["name"] for figure in results["figures"]],
                         ["scores"] + [f"curves-{task}" for task in tasks[1:]])
        of_task = scores["reward_per_step"]
        data = blocks(folder / "scores.dat")
        self.check_bars(data, [[of_task[task].get(agent) for agent in agents] for task in tasks])
        best = [row[1] for row in data[2 * len(agents)]][::2]
        for level, task in zip(best, tasks, strict=True):
            self.assertAlmostEqual(level, scores["optimum"][task], places=7)
        for task in tasks[1:]:
            curves = blocks(folder / f"curves-{task}.dat")
            self.assertEqual([row[0] for row in curves[0]], [1, 2, 3])
            for i, agent in enumerate(agents[:4]):  # all episodes are within the last one's window
                middle, low, high = curves[0][-1][1 + 3 * i:4 + 3 * i]
                self.assertAlmostEqual(middle, sum(of_task[task][agent]) / 2, places=7)
                self.assertTrue(low <= middle <= high)
            self.assertAlmostEqual(curves[1][0][1], scores["optimum"][task], places=7)

        # finished is finished; a trial that is lost is played again, and nothing changes
        self.assertIn("finished before", self.succeed(*study, "--digits", "drawn").stdout)
        curves = (folder / "curves.csv").read_bytes()
        kept = (folder / "runs/train/dqn/seed-0/result.json").stat().st_mtime_ns
        for name in ("result.json", "curve.csv"):
            (folder / "runs/swap-digits/planner/seed-1" / name).unlink()
        (folder / "results.json").unlink()
        self.succeed(*study, "--digits", "drawn", "--seeds", "2")
        self.assertEqual(self.load(folder, "scores.json")["reward_per_step"], of_task)
        self.assertEqual((folder / "curves.csv").read_bytes(), curves)
        # one seed more is played beside those that are there
        self.succeed(*study, "--digits", "drawn", "--seeds", "3")
        more = self.load(folder, "scores.json")["reward_per_step"]
        self.assertEqual({task: {agent: values[:2] for agent, values in by_agent.items()}
                          for task, by_agent in more.items()}, of_task)
        self.assertEqual(self.load(folder, "results.json")["seeds"], 3)
        self.assertEqual((folder / "runs/train/dqn/seed-0/result.json").stat().st_mtime_ns, kept)

    def test_the_whole_paper_clusters_the_lock_once(self):
        # two studies are there already, the lock's with the run that transfer is to take
        output = self.path / "results"
        self.make_run(output / "combination-lock/quick/run")
        empty = {"title": "made before", "what": "", "claims": [], "figures": [], "files": []}
        (output / "point-column-world/quick").mkdir(parents=True)
        (output / "point-column-world/quick/results.json").write_text(json.dumps(empty))
        (output / "combination-lock/quick/results.json").write_text(
            json.dumps({**empty, "digits": "drawn", "digits_per_dial": 3, "net": "cnn"}))
        lock = self.path / "other"
        shutil.copytree(output, lock)
        whole = ("reproduce", "all", "--digits-per-dial", "3", "--seeds", "2", "--episodes", "300",
                 "--agent-episodes", "2", "-o", output, "--json", "--quiet")
        made = json.loads(self.succeed(*whole).stdout)
        self.assertEqual([study.get("study") for study in made["studies"]],
                         ["column-world", None, None, "transfer"])
        self.assertEqual(pathlib.Path(made["page"]), output / "quick.html")
        for study in made["studies"]:
            self.check_words(output / "quick.html", study)
        transfer = self.load(output, "transfer/quick/results.json")
        self.check_page(output / "transfer/quick", transfer)
        self.assertEqual(pathlib.Path(transfer["representation"]),
                         output / "combination-lock/quick/run")
        self.assertEqual((transfer["digits"], transfer["episodes"], transfer["net"]),
                         ("drawn", 2, "cnn"))
        self.assertFalse((output / "transfer/quick/representation").exists())
        # again: nothing is run
        before = (output / "transfer/quick/results.json").stat().st_mtime_ns
        self.assertEqual(json.loads(self.succeed(*whole).stdout), made)
        self.assertEqual((output / "transfer/quick/results.json").stat().st_mtime_ns, before)

        # a lock with other digits is no representation of this one: transfer clusters its own
        process = subprocess.Popen([PSIFOLD, "reproduce", "transfer", "--digits-per-dial", "4",
                                    "-o", lock], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        output = ""
        for line in process.stdout:
            output += line
            if "clustering" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=900)
        self.assertIn("has other digits", output)
        self.assertIn("no representation yet: clustering 1000", output)
        self.assertEqual(process.returncode, 130)

    def test_the_sweep_in_small(self):
        found = json.loads(self.succeed(
            "reproduce", "sweep", "--digits", "drawn", "--digits-per-dial", "3", "--seeds", "2",
            "--episodes", "2", "-o", self.path / "study", "--json", "--quiet").stdout)
        folder = self.path / "study/sweep/quick"
        results, scores = found["studies"][0], self.load(folder, "scores.json")
        self.assertEqual(pathlib.Path(found["page"]), folder / "index.html")
        self.check_page(folder, results)
        self.assertEqual(len(results["claims"]), 4)
        figures = [figure["name"] for figure in results["figures"]]
        self.assertEqual(figures, ["learning-rate", "batch", "buffer", "exploration"])
        for figure, by_value in zip(figures, scores["reward_per_step"].values(), strict=True):
            data = blocks(folder / f"{figure}.dat")
            self.check_bars(data, [[values] for values in by_value.values()])
            self.assertAlmostEqual(data[2][0][1], results["optimum"], places=7)


if __name__ == "__main__":
    unittest.main()
