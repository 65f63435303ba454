"""The page at `/`, in a headless Chromium: it talks, and its picture of the memory is /ledger's."""
import json
import os
import re
import sys
import tempfile
import threading
import urllib.request

import chromium
import program
from page_case import BARS, IS_IDLE, PIXELS, PageTest, Serving

SKIPPED = 77
MAX_PAGE_BYTES = 35000


class Page(PageTest):
    def test_a_chat_arrives_while_pages_fill_and_empty(self):
        page = self.browser
        page.wait_for(IS_IDLE)
        self.fill(max_tokens="600", temperature="1", seed="3")
        self.send("What does the curl option --verbose do?")
        page.wait_for("document.querySelector('.turn.model .text').textContent.length > 3")
        self.assertTrue(page.evaluate("!!running"), "the text came only at the end")
        page.wait_for("$('map').ariaLabel.includes('request 1')")
        self.assertEqual(page.evaluate("$('running').textContent"), "1")
        self.wait_for_end()
        self.assertRegex(page.evaluate("$('usage').textContent"),
                         r"^prompt \d+ · [\d,]+ tokens · [\d,]+ tokens/s · first after \d+ ms · ended by \w+$")
        page.wait_for(IS_IDLE)
        self.assertEqual(page.evaluate("turns.map(turn => turn.role).join()"), "user,assistant")

    def test_the_same_seed_says_what_the_api_says(self):
        asked = {"max_tokens": 40, "temperature": .8, "seed": 7}
        said = json.loads(self.server.post("v1/completions", prompt="int main(", **asked))
        self.browser.evaluate("$('tab-completion').click()")
        self.fill(max_tokens="40", temperature=".8", seed="7")
        self.send("int main(")
        self.wait_for_end()
        self.assertEqual(self.browser.evaluate("$('written').textContent"),
                         "int main(" + said["choices"][0]["text"])
        used = said["usage"]["completion_tokens"]
        self.assertIn(f" · {used} token", self.browser.evaluate("$('usage').textContent"))

    def test_stop_ends_the_request_and_gives_its_pages_back(self):
        self.browser.evaluate("$('tab-completion').click()")
        self.fill(max_tokens="1900")
        self.send("/* ")
        self.browser.wait_for("$('written').children[1]?.textContent.length > 3")
        self.browser.evaluate("$('stop').click()")
        self.wait_for_end()
        self.assertTrue(self.browser.evaluate("$('usage').textContent").endswith("stopped"))
        self.browser.wait_for(IS_IDLE)

    def test_errors_are_what_the_server_says(self):
        self.fill(max_tokens="5000")
        self.send("Hello!")
        shown = self.browser.wait_for("document.querySelector('.error')?.textContent")
        refused = json.loads(self.server.post("v1/chat/completions", max_tokens=5000, stream=True,
                                              messages=[{"role": "user", "content": "Hello!"}]))
        self.assertIn(refused["error"]["message"], shown)
        self.wait_for_end()
        self.assertEqual(self.browser.evaluate("turns.length"), 0)
        self.expect_refusals()

    def test_text_is_only_text(self):
        self.fill(max_tokens="2")
        text = "<img src=x onerror=alert(1)><script>alert(2)</script>"
        self.send(text)
        self.wait_for_end()
        self.assertEqual(self.browser.evaluate("document.querySelector('.turn.you .text').textContent"), text)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img, main script').length"), 0)

    def test_no_other_script_runs_and_no_other_host_is_asked(self):
        self.browser.evaluate("""(() => { const made = document.createElement('script');
            made.textContent = 'window.has_run = true'; document.body.append(made); })()""")
        self.assertFalse(self.browser.evaluate("!!window.has_run"))
        self.assertEqual(self.browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 1, () => 0)"), 0)
        self.assertGreaterEqual(len(self.browser.troubles), 2)
        self.assertTrue(all("Content Security Policy" in one["text"] for one in self.browser.troubles))
        self.browser.troubles.clear()
        self.browser.requests.clear()

    def test_bars_tell_the_ledger(self):
        ledger = self.server.ledger()
        self.browser.wait_for(IS_IDLE)
        bars, books = self.browser.evaluate(BARS), self.browser.evaluate("books")
        self.assertEqual({bar["name"] for bar in bars}, set(ledger["classes"]))
        most = max(cell["peak"] for cell in books["classes"].values())
        for bar in bars:
            cell = books["classes"][bar["name"]]
            if bar["name"] not in ("server", "other", "context"):
                self.assertEqual(cell, ledger["classes"][bar["name"]])
            self.assertAlmostEqual(bar["peak"], 100 * cell["peak"] / most, delta=.01)
            for part, space in zip(bar["parts"], ("host", "pinned", "device")):
                self.assertAlmostEqual(part, 100 * cell["by_space"][space] / most, delta=.01)
            self.assertEqual(int(re.search(r"peak ([\d,]+) B$", bar["exact"])[1].replace(",", "")), cell["peak"])
        peaks = [books["classes"][bar["name"]]["peak"] for bar in bars]
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        self.assertTrue(self.browser.evaluate("$('frozen').textContent").startswith("Frozen: only server"))
        self.browser.evaluate("$('log').click()")
        least = [bar["peak"] for bar in self.browser.evaluate(BARS)]
        self.assertEqual(least, sorted(least, reverse=True))
        self.assertGreater(least[3], 40)

    def test_the_map_tells_the_ledger_under_load(self):
        asked = [threading.Thread(target=self.server.post, args=("v1/completions",), kwargs={
            "prompt": f"void number_{i}(" + "int value, " * 20 * i, "max_tokens": 1200, "ignore_eos": True}) for i in range(6)]
        for one in asked:
            one.start()
        self.browser.evaluate("poll()")
        self.browser.wait_for("books.requests.running > 3")
        most = 0
        while any(one.is_alive() for one in asked):
            self.browser.evaluate("poll()")
            self.check_map(seen := self.browser.evaluate(PIXELS))
            most = max(most, len({owner for owner, _ in seen["books"]["pages"]["map"]}))
        self.assertGreater(most, 4)
        self.browser.wait_for(IS_IDLE)
        self.check_map(self.browser.evaluate(PIXELS))
        self.assertGreater(self.browser.evaluate("grid.cell"), 10) # few pages are large

    def check_map(self, seen):
        """One colour an owner, the others' another, and the counts are the map's."""
        pages = seen["books"]["pages"]
        owners = [owner for owner, count in pages["map"] for _ in range(count)]
        self.assertEqual(len(owners), pages["num"])
        pairs = set(zip(owners, seen["colours"]))
        self.assertEqual(len(pairs), len(set(owners)), pairs)
        self.assertEqual(len(pairs), len({colour for _, colour in pairs}), pairs)
        self.assertEqual([pages["free"], pages["cached"], pages["used"]],
                         [owners.count(0), owners.count(1), sum(owner > 1 for owner in owners)])
        counts = [f"free: {owners.count(0)}", f"cached: {owners.count(1)}"]
        held = [f"request {owner - 1}: {owners.count(owner)}" for owner in sorted(set(owners)) if owner > 1]
        self.assertEqual(seen["keys"], counts + held)

    def test_a_hundred_thousand_pages_are_drawn(self):
        self.browser.wait_for("books")
        self.browser.look(360, ratio=2)
        runs = [[2 + i % 200 if i % 3 else i % 2, 10] for i in range(10000)]
        self.browser.evaluate(f"draw({{...books, pages: {{...books.pages, num: 100000, map: {json.dumps(runs)}}}}})")
        seen = self.browser.evaluate(PIXELS)
        owners = [owner for owner, count in runs for _ in range(count)]
        colour_of = dict(zip(owners, seen["colours"]))
        wrong = [page for page, (owner, colour) in enumerate(zip(owners, seen["colours"]))
                 if colour != colour_of[owner]]
        self.assertEqual((len(seen["colours"]), wrong[:5]), (100000, []))
        self.assertGreater(len(set(seen["colours"])), 30)
        self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 360)

    def test_preparation_ends_at_what_the_ledger_says(self):
        told = self.server.ledger()["preparation"]
        self.assertEqual(told["points"][-1][1], 0)
        shown = self.browser.wait_for("books && $('prep-end').textContent")
        self.assertEqual(shown, f"peak {told['peak']:,} B, then 0 B after preparation")
        tops = [float(y) for y in re.findall(r"V([\d.]+)", self.browser.evaluate(
            "document.querySelector('#chart .edge').getAttribute('d')"))]
        self.assertEqual((min(tops), tops[-1]), (6, 98))
        self.browser.evaluate("books.preparation.points.at(-1)[1] = 4321; draw_preparation()")
        self.assertIn("4,321 B after preparation", self.browser.evaluate("$('prep-end').textContent"))

    def test_nothing_moves_and_nothing_is_wider_than_a_phone(self):
        papers = set()
        for width, scheme in ((360, "light"), (360, "dark"), (1280, "dark"), (800, "light")):
            self.browser.look(width, 780, scheme)
            self.browser.open(self.address)
            self.browser.evaluate("""window.moved = 0; new PerformanceObserver(list => list.getEntries()
                .forEach(entry => moved += entry.value)).observe({type: 'layout-shift', buffered: true}), 0""")
            self.fill(max_tokens="30")
            self.send("Hello!")
            self.wait_for_end()
            self.browser.wait_for(IS_IDLE)
            self.assertLess(self.browser.evaluate("moved"), .02, (width, scheme))
            self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
            papers.add(self.browser.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        self.assertEqual(len(papers), 2)

    def test_the_keyboard_reaches_everything(self):
        self.browser.wait_for("books")
        reached = []
        self.browser.evaluate("document.activeElement.blur()")
        for _ in range(16):
            self.browser.press("Tab", 9)
            reached.append(self.browser.evaluate("document.activeElement.id || document.activeElement.tagName"))
        for name in ("tab-chat", "prompt", "send", "temperature", "seed", "map", "chart", "LI", "SUMMARY"):
            self.assertIn(name, reached)
        self.browser.evaluate("$('map').focus()")
        self.browser.press("ArrowRight", 39)
        self.assertRegex(self.browser.evaluate("$('page-is').textContent"), r"^page 0: ")
        self.browser.evaluate("$('tab-chat').focus()")
        self.browser.press("ArrowRight", 39)
        self.assertEqual(self.browser.evaluate("document.activeElement.id + mode"), "tab-completioncompletion")
        unnamed = self.browser.evaluate("""[...document.querySelectorAll('input, textarea')]
            .filter(one => !one.labels.length).map(one => one.id)""")
        self.assertEqual(unnamed, [])

    def test_a_hidden_page_asks_nothing(self):
        self.browser.wait_for("books")
        self.browser.evaluate("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true}), 0")
        self.browser.evaluate("new Promise(go => setTimeout(go, 1200))")
        self.browser.requests.clear()
        self.browser.evaluate("new Promise(go => setTimeout(go, 1500))")
        self.assertEqual(self.browser.requests, [])
        self.browser.evaluate("delete document.hidden, document.dispatchEvent(new Event('visibilitychange'))")
        self.browser.evaluate("new Promise(go => setTimeout(go, 200))")
        self.assertEqual(self.browser.requests, [self.address + "ledger"])

    def test_a_key_is_asked_for_and_kept_for_the_session(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write("open-sesame\n")
            file.flush()
            guarded = Serving(program.DEMO, "--api-key-file", file.name)
        try:
            self.load(guarded)
            self.browser.wait_for("$('phase').textContent === 'refused' && $('more').open")
            self.browser.evaluate("$('key').focus()")
            self.browser.type("open-sesame")
            self.browser.press("Tab", 9)
            self.browser.wait_for("books && $('model').textContent === 'demo'")
            self.fill(max_tokens="4")
            self.send("Hello!")
            self.browser.wait_for("turns.length")
            self.browser.open(guarded.address)
            self.browser.wait_for("books")
            self.assertEqual(self.browser.evaluate("[localStorage.length, document.cookie, sessionStorage.length].join()"),
                             "0,,1")
            self.expect_refusals()
        finally:
            self.assertEqual(guarded.close(), 0)

    def test_without_a_chat_template_there_is_completion(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(program.DEMO):
                os.symlink(os.path.join(program.DEMO, name), os.path.join(folder, name))
            path = os.path.join(folder, "tokenizer_config.json")
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            del config["chat_template"]
            os.unlink(path)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            server = Serving(folder)
            try:
                self.load(server)
                self.browser.wait_for("books && mode === 'completion' && $('tab-chat').disabled")
                self.assertFalse(self.browser.evaluate("$('completion').hidden"))
            finally:
                self.assertEqual(server.close(), 0)
            self.browser.wait_for("$('phase').textContent === 'not reachable'")
            self.assertTrue(self.browser.evaluate("$('memory').classList.contains('stale')"))
            self.expect_refusals()

    def test_the_page_is_small(self):
        reply = urllib.request.urlopen(self.server.address, timeout=60)
        self.assertLess(len(reply.read()), MAX_PAGE_BYTES)
        self.assertNotIn("unsafe", reply.headers["Content-Security-Policy"])


if __name__ == "__main__":
    if not chromium.find():
        IS_REQUIRED = "chromium" in os.environ.get("MLA_REQUIRE", "").split(",")
        print("chromium", "is required and was not found" if IS_REQUIRED else "SKIPPED: there is none")
        sys.exit(1 if IS_REQUIRED else SKIPPED)
    program.main()
