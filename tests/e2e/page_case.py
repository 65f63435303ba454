"""A test case with `mla serve` on the demo, its page in a headless Chromium, and looks at it."""
import json
import signal
import subprocess
import unittest
import urllib.error
import urllib.request

import chromium
import program

IS_IDLE = "books && books.requests.running === 0 && !$('map').ariaLabel.includes('request')"
PIXELS = """(() => {
  const {cell, cols} = grid, {width, height} = $('map'), middle = i => Math.floor((i + .5) * cell - (cell > 4 ? 1 : 0));
  const pen = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
  pen.drawImage($('map'), 0, 0);
  const all = pen.getImageData(0, 0, width, height), colours = [];
  for (let page = 0; page < books.pages.num; page++) {
    const x = middle(page % cols), y = middle(Math.floor(page / cols));
    colours.push([...all.data.slice(4 * (y * all.width + x), 4 * (y * all.width + x) + 3)].join());
  }
  return {colours, books, keys: [...$('owners').children].map(key => key.textContent)};
})()"""
BARS = """(() => [...$('bars').children].map(row => ({name: row.dataset.name, words: row.innerText.split('\\n'),
  width: row.children[1].clientWidth, exact: row.ariaLabel,
  parts: [...row.querySelectorAll('.host, .pinned, .device')].map(part => parseFloat(part.style.width)),
  peak: parseFloat(row.querySelector('.peak').style.width)})))()"""


class Serving:
    """`mla serve` on a port of the kernel's choice, with what it says on the way kept."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [program.PROGRAM, "serve", *map(str, arguments), "--port", "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = ""
        for line in self.process.stdout:
            said += line
            if line.startswith("listening on "):
                self.address = line.split()[-1] + "/"
                return
        raise RuntimeError(f"mla serve ended: {said}")

    def post(self, path, **body):
        """The answer's text, errors included."""
        asked = urllib.request.Request(self.address + path, json.dumps(body).encode(),
                                       {"Content-Type": "application/json"})
        try:
            return urllib.request.urlopen(asked, timeout=120).read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def ledger(self):
        return json.load(urllib.request.urlopen(self.address + "ledger", timeout=120))

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait(timeout=120)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving(program.DEMO)
        cls.browser = chromium.Chromium()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        status = cls.server.close()
        assert status == 0, f"mla serve ends with {status}"

    def setUp(self):
        self.load(self.server)

    def tearDown(self):
        """No test but those that say so may leave a complaint or ask another host."""
        self.assertEqual(self.browser.troubles, [])
        hosts = {address for address in self.browser.requests
                 if not address.startswith((self.address, "data:", "about:"))}
        self.assertEqual(hosts, set())

    def load(self, server):
        self.address = server.address
        self.browser.requests.clear()
        self.browser.troubles.clear()
        self.browser.look(1280)
        self.browser.open(server.address)

    def expect_refusals(self):
        """The browser itself tells its console of every reply that is not 200."""
        others = [one for one in self.browser.troubles if one.get("source") != "network"]
        self.assertEqual(others, [])
        self.browser.troubles.clear()

    def fill(self, **values):
        for name, value in values.items():
            self.browser.evaluate(f"$({json.dumps(name.replace('_', '-'))}).value = {json.dumps(value)}")

    def send(self, text):
        self.browser.evaluate("$('prompt').value = $('usage').textContent = ''; $('prompt').focus()")
        self.browser.type(text)
        self.browser.press("Enter", 13, "\r", control=self.browser.evaluate("mode === 'completion'"))

    def wait_for_end(self):
        self.browser.wait_for("!running && $('usage').textContent", "an answer's end")
