"""Pages of every kind of run, and a real browser to look at them with: what the tests share."""

import atexit
import base64
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PSIFOLD = os.environ["PSIFOLD"]
MAKE_RUN = os.environ["MAKE_RUN"]
TRUTH_RUN = os.environ.get("TRUTH_RUN")
SCREENSHOTS = pathlib.Path(os.environ.get("SCREENSHOTS", "."))
DESKTOP, PHONE = (1280, 900), (390, 844)

# An action and a reward whose names would be scripts, were they anything but names.
HOSTILE = """@type: MDP
@parameters

@reward_models
<script>alert(1)</script>
@nr_states
3
@nr_choices
4
@model
state 0 [0] init
\taction <img/src=x/onerror=alert(2)> [0]
\t\t1 : 0.5
\t\t2 : 0.5
\taction b"onclick=alert(3) [1]
\t\t0 : 1
state 1 [0] </script><script>alert(4)</script>
\taction <img/src=x/onerror=alert(2)> [1]
\t\t2 : 1
state 2 [0]
\taction <img/src=x/onerror=alert(2)> [0]
\t\t2 : 1
"""


def psifold(*arguments, **environment):
    subprocess.run([PSIFOLD, *map(str, arguments)], check=True, capture_output=True, timeout=500,
                   env={**os.environ, **environment})


def interrupt(run, to, refinements):
    """A run as it looked after some refinements, with a few labels still wrong."""
    manifest = json.loads((run / "manifest.json").read_text())
    start = {key: manifest[key] for key in ("psifold", "threads", "seed", "options")}
    start["data"] = manifest["data"]["fingerprint"]
    result = to / "checkpoint" / "result"
    result.mkdir(parents=True)
    (to / "checkpoint" / "start.json").write_text(json.dumps(start))
    for level in range(1, refinements + 1):
        shutil.copy(run / f"clusters-{level:02}.npy", result)
    labels = result / f"clusters-{refinements:02}.npy"
    content = bytearray(labels.read_bytes())
    for at in range(1024, len(content) - 4, 4 * 501):
        if content[at:at + 4] != bytes(4):  # the end of an episode stays one
            content[at:at + 4] = (1).to_bytes(4, "little")
    labels.write_bytes(content)


def doubt(run, to):
    """A run whose verdict leaves something open."""
    shutil.copytree(run, to)
    manifest = json.loads((to / "manifest.json").read_text())
    doubts = [("pair", 1, 2, 1.5, 3), ("untried", 3, 0, None, 0), ("untried", -1, 3, None, 0),
              ("seldom", 2, 1, None, 1), ("seldom", 3, 3, None, 2), ("rare", 1, 0, None, 2),
              ("looks", 2, -1, None, 0), ("past", -1, 2, None, 0), ("growth", -1, -1, None, 0)]
    keys = ("kind", "state", "other", "nats", "visits")
    manifest["result"].update(verdict="undetermined", doubtful_fraction=0.125,
                              doubts=[dict(zip(keys, doubt)) for doubt in doubts])
    (to / "manifest.json").write_text(json.dumps(manifest))


def make_up(at, name, *size):
    """A run with so many latent states, of images or of so many numbers."""
    (at / name).mkdir()
    subprocess.run([MAKE_RUN, at / name, *map(str, size)], check=True)
    (at / name / "run").rename(at / f"{name}-run")


def make_runs(at):
    few = ("--trunk-steps", 60, "--head-steps", 60, "--representation-steps", 60,
           "--max-refinements", 6, "--quiet")
    psifold("generate", "column-world", "--episodes", 300, "-o", at / "columns", "--quiet")
    psifold("generate", "point-column-world", "--episodes", 150, "-o", at / "points", "--quiet")
    # one image for each digit: pictures, yet few enough for a table
    psifold("generate", "combination-lock", "--digits", "drawn", "--digits-per-dial", 4,
            "--images-per-digit", 1, "--episodes", 300, "-o", at / "lock", "--quiet")
    psifold("cluster", at / "columns", "-o", at / "columns-run", "--quiet")
    psifold("cluster", at / "points", "-o", at / "points-run", *few)
    psifold("cluster", at / "lock", "-o", at / "lock-run", "--quiet")
    interrupt(at / "lock-run", at / "interrupted-run", 3)
    doubt(at / "columns-run", at / "doubtful-run")
    make_up(at, "many", 2000)
    make_up(at, "vectors", 8, 24)
    psifold("export", at / "lock-run", "--drn", at / "lock.drn")
    (at / "hostile.drn").write_text(HOSTILE)


@functools.cache
def pages():
    """Name → page; made once, gone when the tests are over."""
    at = pathlib.Path(tempfile.mkdtemp(prefix="psifold-browser-"))
    atexit.register(shutil.rmtree, at)
    SCREENSHOTS.mkdir(exist_ok=True)
    make_runs(at)
    made = {}
    for name in ("columns", "points", "lock", "interrupted", "doubtful", "vectors", "many"):
        made[name] = at / f"{name}.html"
        data = [at / "lock"] if name == "interrupted" else []  # it does not say where they are
        psifold("report", at / f"{name}-run", *data, "-o", made[name], "--figures",
                at / f"{name}-figures")
    for name, words in (("compared", (at / "lock-run", at / "interrupted-run")),
                        ("exact", (at / "lock.drn",)), ("hostile", (at / "hostile.drn",))):
        made[name] = at / f"{name}.html"
        psifold("report", *words, "-o", made[name])
    psifold("reproduce", "column-world", "-o", at / "results")
    made["study"] = at / "results" / "column-world" / "quick" / "index.html"
    subprocess.run([TRUTH_RUN, "combination-lock", at / "truth", "cnn", "4", "5",
                    "digits-per-dial", "3", "images-per-digit", "4"], check=True,
                   stdout=subprocess.DEVNULL)
    psifold("reproduce", "transfer", "--run", at / "truth", "--digits", "drawn",
            "--digits-per-dial", 3, "--seeds", 2, "--episodes", 2, "-o", at / "results")
    made["transfer"] = at / "results" / "transfer" / "quick" / "index.html"
    return made


def chromium(profile, logs):
    """Headless; keeps what the page says on the console and, if asked to, what it asks the network
    for (which takes time: pictures in the page are such requests, too)."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                     "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", f"--window-size={DESKTOP[0]},{DESKTOP[1]}",
                     f"--user-data-dir={profile}"):
        options.add_argument(argument)
    if os.getuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Browser(unittest.TestCase):
    """A page at a time in headless Chromium."""

    logs = ("browser",)

    @classmethod
    def setUpClass(cls):
        cls.pages = pages()
        cls.folder = cls.pages["columns"].parent
        cls.driver = chromium(cls.folder / f"profile-{cls.__name__}", cls.logs)
        cls.addClassCleanup(cls.driver.quit)

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})

    def paint(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, name, size=DESKTOP, scheme="light"):
        self.resize(*size)
        self.paint(scheme)
        for log in self.logs:
            self.driver.get_log(log)
        self.driver.get(self.pages[name].as_uri())

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def visible_rows(self):
        return self.driver.execute_script(
            "return Array.from(document.querySelectorAll('#states > tbody > tr'))"
            ".filter(r => r.getClientRects().length).map(r => Number(r.dataset.k))")

    def shoot(self, name):
        width, height = self.driver.execute_script(
            "return [innerWidth, Math.min(9000, document.documentElement.scrollHeight)]")
        # a window as high as the page, and two frames: what is out of sight is not drawn
        self.resize(width, height)
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"optimizeForSpeed": True})
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
