"""Walking around in a page: graph, search, keyboard, episodes, refinements, comparison."""

import html
import json
import time
import unittest

from pages import DESKTOP, PHONE, Browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

# the graph as its library has it
CY = "document.getElementById(arguments[0])._cyreg.cy"


class Explorer(Browser):
    def data(self, name):
        return json.loads(self.driver.execute_script(
            "return document.getElementById(arguments[0]).textContent", name))

    def cy(self, what, graph="graph"):
        return self.driver.execute_script(f"const cy = {CY}; return {what}", graph)

    def click_state(self, k, graph="graph"):
        """With the mouse, where its circle is drawn."""
        box = self.find("#" + graph)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
        at = self.cy(f"cy.getElementById('s{k}').renderedPosition()", graph)
        size = box.size
        ActionChains(self.driver).move_to_element_with_offset(
            box, int(at["x"] - size["width"] / 2), int(at["y"] - size["height"] / 2)
        ).click().perform()

    def title(self):
        return self.find("#panel-title").text

    def classes(self, name, graph="graph"):
        return set(self.cy(f"cy.nodes('.{name}').not('.group').map(n => Number(n.id().slice(1)))",
                           graph))

    @staticmethod
    def likely(graph, k):
        """The three most probable successors of every action, but for the improbable."""
        row, found = k * graph["actions"], set()
        for a in range(graph["actions"]):
            first = sum(graph["count"][:row + a])
            pairs = sorted(((-graph["p"][i], graph["next"][i])
                            for i in range(first, first + graph["count"][row + a])))[:3]
            found |= {to for i, (p, to) in enumerate(pairs) if i == 0 or -p >= 0.005}
        return found

    # ---- the graph ------------------------------------------------------------------------------

    def test_a_click_shows_a_state(self):
        for name in ("columns", "points", "lock", "interrupted", "vectors", "exact"):
            with self.subTest(name):
                self.open(name)
                graph = self.data("graph-data")
                for k in (1, graph["states"] - 1):
                    self.click_state(k)
                    self.assertEqual(self.title(), f"Latent state {k}")
                    panel = self.find("#panel").text
                    self.assertIn(f"{graph['size'][k]:,}", panel)
                    self.assertEqual(self.classes("chosen"), {k})
                    if k in graph["terminal"]:
                        self.assertIn("nothing follows", panel)
                        continue
                    # where each action leads, as the model has it
                    leads = [int(link.text) for link in self.driver.find_elements(
                        By.CSS_SELECTOR, "#panel .actions a")]
                    self.assertEqual(set(leads), self.likely(graph, k))
                    self.assertIn("Closest", panel)
                    self.assertEqual("Observations" in panel, name != "exact")

    def test_a_link_in_the_panel_leads_on(self):
        self.open("columns")
        self.click_state(1)
        link = self.find("#panel .actions tr.best a")
        to = int(link.text)
        link.click()
        self.assertEqual(self.title(), f"Latent state {to}")
        self.assertEqual(self.classes("chosen"), {to})

    def test_search_finds_a_state_among_two_thousand(self):
        self.open("many")
        self.find("#go").send_keys("1234")
        self.assertEqual(self.title(), "Latent state 1234")
        at = self.cy("cy.getElementById('s1234').renderedPosition()")
        size = self.find("#graph").size
        self.assertTrue(0 < at["x"] < size["width"] and 0 < at["y"] < size["height"])
        self.assertGreater(self.cy("cy.zoom()"), 0.2)
        self.find("#go").send_keys(Keys.ENTER)
        self.assertEqual(self.driver.switch_to.active_element.get_attribute("id"), "panel")
        self.find("#go").clear()
        self.find("#go").send_keys("99999", Keys.ENTER)
        self.assertIn("no latent state 99999", self.driver.execute_script(
            "return document.getElementById('told').textContent"))

    def test_the_keyboard_is_enough(self):
        self.open("columns")
        self.find("#go").send_keys("1")
        box = self.find("#graph")
        self.driver.execute_script("arguments[0].focus()", box)
        before = self.cy("cy.getElementById('s1').position('x')")
        box.send_keys(Keys.ARROW_RIGHT)
        (chosen,) = self.classes("chosen")
        self.assertNotEqual(chosen, 1)
        self.assertGreater(self.cy(f"cy.getElementById('s{chosen}').position('x')"), before)
        box.send_keys(Keys.ARROW_LEFT)
        self.assertEqual(self.classes("chosen"), {1})
        zoom = self.cy("cy.zoom()")
        box.send_keys("+")
        self.assertGreater(self.cy("cy.zoom()"), zoom)
        box.send_keys("0")
        self.assertLess(abs(self.cy("cy.zoom()") - zoom), 0.2)
        box.send_keys(Keys.ENTER)
        self.assertEqual(self.driver.switch_to.active_element.get_attribute("id"), "panel")
        box.send_keys(Keys.ESCAPE)
        self.assertEqual(self.classes("chosen"), set())
        # everything that can be used can be reached by Tab, in the order of the page
        self.open("columns")
        seen = []
        for _ in range(12):
            self.driver.switch_to.active_element.send_keys(Keys.TAB)
            seen.append(self.driver.switch_to.active_element.get_attribute("id"))
        order = [seen.index(name) for name in ("go", "colour-by", "only-action", "policy", "layout",
                                               "graph")]
        self.assertEqual(order, sorted(order))

    def test_colours_actions_policy_and_layouts(self):
        self.open("lock")
        graph = self.data("graph-data")
        fills = "cy.nodes().not('.group').map(n => n.data('fill'))"
        by_value = self.cy(fills)
        Select(self.find("#colour-by")).select_by_value("state")
        self.assertNotEqual(self.cy(fills), by_value)
        row = 0
        arrows = {"all": set(), 1: set(), "best": set()}
        for k in range(graph["states"]):
            for a in range(graph["actions"]):
                n = graph["count"][k * graph["actions"] + a]
                for to in graph["next"][row:row + n]:
                    arrows["all"].add((k, to))
                    if a == 1:
                        arrows[1].add((k, to))
                    if graph["policy"][k] == a:
                        arrows["best"].add((k, to))
                row += n
        drawn = "cy.edges().map(e => e.source().id().slice(1) + ' ' + e.target().id().slice(1))"

        def shown():
            return {tuple(map(int, pair.split())) for pair in self.cy(drawn)}

        self.assertEqual(shown(), arrows["all"])
        Select(self.find("#only-action")).select_by_value("1")
        self.assertEqual(shown(), arrows[1])
        Select(self.find("#only-action")).select_by_value("-1")
        self.find("#policy").click()
        self.assertEqual(shown(), arrows["best"])
        for layout in ("layers", "forces", "packed"):
            Select(self.find("#layout")).select_by_value(layout)
            places = self.cy("cy.nodes().not('.group').map(n => n.position())")
            least = min((a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2
                        for i, a in enumerate(places) for b in places[:i])
            self.assertGreater(least, 30 ** 2, layout)

    def test_the_graph_is_as_high_as_it_needs_and_its_words_can_be_read(self):
        for name, least, most in (("columns", 200, 320), ("vectors", 300, 560), ("lock", 500, 560)):
            self.open(name)
            self.assertTrue(least < self.find("#graph").size["height"] < most, name)
        for name in ("columns", "vectors", "interrupted"):
            self.open(name)
            self.assertGreaterEqual(self.cy("cy.zoom()"), 8 / 11, name)
        self.open("columns", PHONE)
        self.assertGreaterEqual(self.cy("cy.zoom()"), 8 / 11)

    def test_doubts_are_told_at_the_top_and_marked(self):
        self.open("doubtful")
        self.assertIn("12.5 % of the observations", self.find("#verdict").text)
        self.assertEqual(self.find("#advice").text.split("\n"), [
            "Latent states 1 and 2 may be one (1.5 nats apart): collect more of both.",
            "Action 0 was never taken in latent state 3: try it there.",
            "Action 3 was never taken: what it does is not known.",
            "Something that followed action 1 in latent state 2 was seen once only, too few to "
            "tell what leads there: collect more of it.",
            "Something that followed action 3 in latent state 3 was seen 2 times only, too few to "
            "tell what leads there: collect more of it."])
        self.find("#verdict summary").click()
        more = self.find("#verdict details ul").text.split("\n")
        self.assertEqual(len(more), 4)
        for sentence in more:
            self.assertRegex(sentence, r"^[A-Z].*\.$")
        self.assertIn("cells of a grid", more[-1])
        self.assertEqual(self.classes("open"), {1, 2, 3})
        self.assertEqual(self.cy("cy.edges('.open').map(e => e.id())"), ["open-1-2"])
        self.find("#advice a.state-link").click()
        self.assertEqual(self.title(), "Latent state 1")

    def test_hostile_names_stay_text(self):
        self.open("hostile")
        self.click_state(0)
        self.assertIn("<img/src=x/onerror=alert(2)>", self.find("#panel").text)
        self.assertIn("<script>alert(1)</script>", self.find("main").text)
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, "img[src=x]"), [])
        options = [o.text for o in Select(self.find("#only-action")).options]
        self.assertIn('b"onclick=alert(3)', options)
        policy = self.find("meta[http-equiv]").get_attribute("content")
        self.assertRegex(policy, r"^default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
                                 r"base-uri 'none'; form-action 'none'; "
                                 r"script-src 'sha256-[A-Za-z0-9+/=]{44}'$")
        self.assertEqual(self.driver.get_log("browser"), [])
        # what found its way into the page all the same would not run
        self.driver.execute_script(
            "const s = document.createElement('script'); s.textContent = 'window.ran = true';"
            "document.body.append(s)")
        self.assertIsNone(self.driver.execute_script("return window.ran || null"))

    # ---- episodes -------------------------------------------------------------------------------

    def test_the_scrubber_tells_every_step(self):
        for name in ("columns", "points", "lock", "interrupted", "vectors"):
            with self.subTest(name):
                self.open(name)
                told = self.data("episode-data")
                self.assertGreaterEqual(len(told["episodes"]), 4)
                episode = told["episodes"][0]
                slider = self.find("#step")
                self.assertEqual(int(slider.get_attribute("max")), len(episode["actions"]))
                for t in range(1, 5):
                    slider.send_keys(Keys.ARROW_RIGHT)
                    facts = self.find("#step-facts").text.split("\n")
                    facts = dict(zip(facts[::2], facts[1::2]))
                    self.assertEqual(int(facts["latent state"].split()[0]), episode["labels"][t])
                    self.assertEqual(int(facts["action"]), episode["actions"][t])
                    self.assertAlmostEqual(float(facts["reward"]), episode["rewards"][t], places=3)
                    self.assertEqual(self.classes("now"), {episode["labels"][t]})
                self.assertEqual(len(self.driver.find_elements(
                    By.CSS_SELECTOR, ".states-strip i")), len(episode["labels"]))

    def test_surprises_are_where_the_model_was_wrong(self):
        found = 0
        for name in ("interrupted", "lock"):
            self.open(name)
            told = self.data("episode-data")
            for i, episode in enumerate(told["episodes"]):
                Select(self.find("#episode")).select_by_value(str(i))
                expected = [t for t, predicted in enumerate(episode["one"])
                            if (predicted is not None and abs(predicted - episode["rewards"][t])
                                > (told["allowed"] or 1e-6))
                            or (episode["p"][t] is not None and episode["p"][t] < 0.05)]
                shown = self.driver.find_elements(By.CSS_SELECTOR, "#surprises button")
                self.assertEqual([int(b.text.split()[1]) for b in shown], expected[:20])
                found += len(expected)
                if expected:
                    shown[-1].click()
                    self.assertIn("surprise", self.find("#step-facts").text)
        self.assertGreater(found, 0)

    def test_images_play(self):
        self.open("lock")
        pixels = "return document.querySelector('canvas.frame').toDataURL()"
        WebDriverWait(self.driver, 10).until(
            lambda d: len(set(d.execute_script(pixels))) > 0)
        seen = set()
        self.find("#play").click()
        self.assertEqual(self.find("#play").text, "Pause")
        until = time.monotonic() + 20
        while len(seen) < 4 and time.monotonic() < until:
            seen.add(self.driver.execute_script(pixels))
        self.find("#play").click()
        self.assertGreaterEqual(len(seen), 4)
        self.assertGreaterEqual(int(self.find("#step").get_attribute("value")), 3)
        self.assertEqual(self.find("#play").text, "Play")

    # ---- refinements and comparison -------------------------------------------------------------

    def test_the_tree_is_linked_with_the_graph(self):
        for name in ("lock", "exact"):
            with self.subTest(name):
                self.open(name)
                stages = self.data("refinement-data")["stages"]
                flow = self.find("#tree .flow-box")
                self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", flow)
                bars = flow.find_elements(By.CSS_SELECTOR, "rect.cluster")
                self.assertEqual(len(bars), sum(min(60, len(s["sizes"])) for s in stages))
                largest = max(range(len(stages[0]["sizes"])), key=stages[0]["sizes"].__getitem__)
                bar = next(b for b in bars if f"cluster {largest}:" in b.find_element(
                    By.TAG_NAME, "title").get_attribute("textContent"))
                ActionChains(self.driver).move_to_element(bar).perform()
                became = set()
                for k in range(len(stages[-1]["sizes"])):
                    cluster = k
                    for stage in stages[:0:-1]:
                        cluster = stage["from"][cluster] if cluster >= 0 else -1
                    if cluster == largest:
                        became.add(k)
                every = set(range(len(stages[-1]["sizes"])))
                self.assertEqual(self.classes("faint"), every - became)
                self.assertIn(f"cluster {largest}", self.find("#tree .flow-told").text)
                flow.send_keys(Keys.ARROW_RIGHT)
                flow.send_keys(Keys.ARROW_RIGHT)
                self.assertIn("refinement", self.find("#tree .flow-told").text)
                flow.send_keys(Keys.ESCAPE)
                self.assertEqual(self.classes("faint"), set())

    def test_two_runs_stand_side_by_side(self):
        self.open("compared")
        words = self.find("#compared-words").text
        compared = self.data("compare-data")
        there, here = {}, {}
        for k, j, _ in compared["pairs"]:
            there.setdefault(k, set()).add(j)
            here.setdefault(j, set()).add(k)
        joined = [k for k, js in there.items() if len(js) == 1 and len(here[next(iter(js))]) > 1]
        self.assertGreater(len(joined), 0)
        self.assertIn(f"{len(joined)} are joined", words)
        rows = self.driver.find_elements(By.CSS_SELECTOR, "#compared tbody tr")
        self.assertEqual([int(r.text.split()[0]) for r in rows], sorted(joined))
        self.click_state(joined[0], "graph-first")
        partner = next(iter(there[joined[0]]))
        every = set(range(self.data("graph-data-other")["states"]))
        self.assertEqual(self.classes("faint", "graph-other"), every - {partner})
        self.click_state(partner, "graph-other")
        every = set(range(self.data("graph-data")["states"]))
        self.assertEqual(self.classes("faint", "graph-first"), every - here[partner])
        self.assertIn(f"Latent state {partner} of", self.find("#compare-told").text)

    # ---- for everybody --------------------------------------------------------------------------

    def test_without_a_script_nothing_important_is_missing(self):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.open("compared")
            self.assertTrue(self.find("#compared").is_displayed())
            self.assertFalse(self.find("#compare-place").is_displayed())
            self.assertIn("needs JavaScript", self.find("#explorer").text)
            row = self.find("#s1").text
            self.assertIn("nats", row)
            self.assertIn("least typical", row)
            self.open("doubtful")
            self.assertTrue(self.find("#advice").is_displayed())
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def test_a_notebook_shows_the_same_page(self):
        # as the text of a frame that may run scripts and nothing else
        frame = self.folder / "notebook.html"
        frame.write_text('<!DOCTYPE html><title>notebook</title><iframe id="f" sandbox="allow-scripts" '
                         'width="1000" height="800" srcdoc="'
                         + html.escape(self.pages["lock"].read_text()) + '"></iframe>')
        self.open("lock")
        self.driver.get_log("browser")
        self.driver.get(frame.as_uri())
        self.driver.switch_to.frame("f")
        self.find("#go").send_keys("3")
        self.assertEqual(self.title(), "Latent state 3")
        link = self.find("#panel .actions a")
        to = link.text
        link.click()
        self.assertEqual(self.title(), f"Latent state {to}")
        self.driver.switch_to.default_content()
        self.assertEqual(self.driver.get_log("browser"), [])

    def test_print_keeps_the_graph_and_leaves_the_controls_out(self):
        self.open("lock")
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.assertTrue(self.find("#graph").is_displayed())
        for control in ("#go", "#episodes", "#stages"):
            self.assertFalse(self.find(control).is_displayed(), control)

    def test_two_thousand_states_are_moved_at_thirty_frames_a_second(self):
        # time of the processor: others may be busy on the machine
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        self.open("many")

        def used():
            metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

        box = self.find("#graph")
        self.assertEqual(self.cy("cy.nodes().not('.group').length"), 2000)
        self.driver.execute_script(f"const cy = {CY}; window.drawn = 0;"
                                   "cy.on('render', () => window.drawn++)", "graph")
        pan, before, start = self.cy("cy.pan()"), used(), time.monotonic()
        drag = ActionChains(self.driver, duration=16).move_to_element_with_offset(box, -260, -180)
        drag.click_and_hold()
        for step in range(90):
            drag.move_by_offset(3 if step % 30 < 15 else -3, 1)
        drag.release().perform()
        seconds, took = time.monotonic() - start, used() - before
        drawn = self.driver.execute_script("return window.drawn")
        self.driver.execute_cdp_cmd("Performance.disable", {})
        self.assertNotEqual(self.cy("cy.pan()"), pan)
        self.assertGreaterEqual(drawn, 45)
        print(f"\npanning 2,000 states: {drawn} frames, {1000 * took / drawn:.1f} ms of the "
              f"processor each, {drawn / seconds:.0f} a second of the clock")
        self.assertLess(took / drawn, 1 / 30)


if __name__ == "__main__":
    unittest.main()
