"""Headless Chromium, spoken to in its own protocol over a pair of pipes."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Pipes as it wants them are POSIX's.
EXECUTABLE = next(filter(None, map(shutil.which, NAMES)), None) if os.name == "posix" else None
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)

# The browser reads commands from descriptor 3 and writes answers to 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of one browser; collects what it requests and complains about."""

    def __init__(self, profile, seconds=60):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCH,
                str(to_browser),
                str(from_browser),
                EXECUTABLE,
                *FLAGS,
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._deadline = time.monotonic() + seconds
        self._buffer = b""
        self._count = 0
        self._session = {}
        self.events = []

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": session["sessionId"]}
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *error):
        os.close(self._out)
        self._process.terminate()
        self._process.wait(30)
        os.close(self._in)

    def call(self, method, **params):
        """Return the answer to a command; events that come before it are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "result" in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Load a file and wait until all of it is there."""
        n_loaded = self._n_loaded()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._n_loaded() == n_loaded:
            self.events.append(self._receive())

    def _n_loaded(self):
        return sum(event.get("method") == "Page.loadEventFired" for event in self.events)

    def look(self, width, height=900, scheme="light"):
        """Show the page in a window of some size, in light or in dark colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        colours = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=colours)

    def evaluate(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"]["value"]

    def screenshot(self):
        """Return the whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return b64decode(shot["data"])

    @property
    def requests(self):
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    @property
    def complaints(self):
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self.events if event.get("method") in kinds]

    def _receive(self):
        while b"\0" not in self._buffer:
            left = self._deadline - time.monotonic()
            ready, _, _ = select.select([self._in], [], [], max(left, 0))
            assert ready, "the browser did not answer in time"
            part = os.read(self._in, 1 << 16)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
