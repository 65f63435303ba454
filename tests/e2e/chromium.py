"""Drives a headless Chromium over its debugging pipe: one page, what it asked for and what it said."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-extensions", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe")
PATIENCE_S = 60


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one page. What happened on it: `requests` (addresses), `troubles` (what
    the console or the browser complained of)."""

    def __init__(self):
        self.requests, self.troubles = [], []
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        reads, self.to_browser = os.pipe()
        self.from_browser, writes = os.pipe()
        # Out of the way of 3 and 4, where the browser looks for its pipe.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (reads, writes)]

        def place_ends():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        home = self.folder.name
        self.process = subprocess.Popen(
            [find(), *FLAGS, f"--user-data-dir={home}", "about:blank"], close_fds=False,
            preexec_fn=place_ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": home, "TMPDIR": home})
        for end in (reads, writes, *ends):
            os.close(end)
        self.rest, self.next_id, self.session = b"", 0, None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.folder.cleanup()

    def _read(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                raise TimeoutError("the browser says nothing")
            got = os.read(self.from_browser, 1 << 16)
            if not got:
                raise EOFError("the browser has ended")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        what, said = message.get("method"), message.get("params", {})
        if what == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif what == "Runtime.exceptionThrown":
            self.troubles.append(said["exceptionDetails"])
        elif what == "Log.entryAdded" and said["entry"]["level"] in ("warning", "error"):
            self.troubles.append(said["entry"])
        elif what == "Runtime.consoleAPICalled" and said["type"] in ("warning", "error", "assert"):
            self.troubles.append(said)

    def call(self, method, **params):
        """The answer to one command of the DevTools protocol."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def evaluate(self, expression):
        """The value of a JavaScript expression on the page; promises are awaited."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                         returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait_for(self, expression, what=None):
        """Its first true value."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            value = self.evaluate(expression)
            if value:
                return value
            time.sleep(.02)
        raise TimeoutError(f"{what or expression} never came")

    def look(self, width, height=900, scheme="light", ratio=1):
        """The size of the window, and whether its user likes it dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=ratio, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait_for(f"location.href === {json.dumps(address)} && "
                      "document.readyState === 'complete'", address)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, code, text="", control=False):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, modifiers=2 if control else 0,
                      **({"text": text} if kind == "keyDown" and text else {}))

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
