# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a window, driven over a pipe in its own protocol; nothing else is installed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

SECONDS = 120
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A context; it ends with the process."""

    def __enter__(self):
        # Chromium reads commands from its file 3 and answers on its file 4.
        for_it, self._out = os.pipe()
        self._in, from_it = os.pipe()

        def connect():
            os.dup2(for_it, 13)
            os.dup2(from_it, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--disable-background-networking", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={self._folder.name}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(
            [find(), *flags], preexec_fn=connect, close_fds=False, **quiet
        )
        os.close(for_it)
        os.close(from_it)
        self._rest, self._number, self.events = b"", 0, []
        return self

    def __exit__(self, *exception):
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def send(self, method, session=None, **parameters):
        """The result of a command; what happens before it arrives goes to `events`."""
        self._number += 1
        number, message = self._number, {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']['message']}"
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], SECONDS)
            assert ready, f"Chromium said nothing for {SECONDS} seconds."
            part = os.read(self._in, 1 << 20)
            assert part, "Chromium has ended."
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def wait_for(self, method):
        """Reads up to the event and returns all events since the last call."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._read())
        found, self.events = self.events, []
        return found

    def page(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session)


class Page:
    """A tab. A width is that of the window; a phone has 360 pixels."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def open(self, url):
        """Loads a page; returns what it requested, and what it complained about."""
        self.browser.events = []
        self.send("Page.navigate", url=url)
        requested, said = [], []
        for event in self.browser.wait_for("Page.loadEventFired"):
            about = event.get("params", {})
            if event.get("method") == "Network.requestWillBeSent":
                requested.append(about["request"]["url"])
            if event.get("method") == "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                said.append(details.get("exception", {}).get("description") or details["text"])
            if event.get("method") == "Log.entryAdded" and about["entry"]["level"] == "error":
                said.append(about["entry"]["text"])
            if event.get("method") == "Runtime.consoleAPICalled" and about["type"] == "error":
                said.append(str(about["args"]))
        return requested, said

    def evaluate(self, expression):
        """The value of a JavaScript expression, which may be a promise."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def resize(self, width, height=900):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def prefer(self, scheme):
        """`light` or `dark`, as a reader's system would."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, file, selector=None):
        """The whole page, or what surrounds the first element that a selector finds."""
        area = "document.documentElement.getBoundingClientRect()"
        if selector:
            area = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        box = self.evaluate(f"(b => [b.x + scrollX, b.y + scrollY, b.width, b.height])({area})")
        clip = dict(zip(("x", "y", "width", "height"), box, strict=True), scale=1)
        shot = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        Path(file).write_bytes(base64.b64decode(shot["data"]))
