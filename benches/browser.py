"""A headless Chromium that a test drives through a pipe, by the Chrome DevTools Protocol; it has no network.

Needs no package: `--remote-debugging-pipe` reads commands from descriptor 3 and writes answers to descriptor 4.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_READ, _WRITE = 3, 4


def program() -> str | None:
    """Return the Chromium of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """One page. `console` collects what it logs and its exceptions, `requests` every URL that it asks for."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self._session = ""
        self._number = 0
        self._received = b""
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        pipes = f'exec "$@" {_READ}<&{theirs_in} {_WRITE}>&{theirs_out}'
        command = [
            "bash", "-c", pipes, "bash", str(program()), "--headless", "--no-sandbox", "--disable-gpu",
            f"--user-data-dir={self._profile}", "--no-first-run", "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={width},{height}", "--remote-debugging-pipe",
            "--hide-scrollbars",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, _type: type | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result. RuntimeError where the browser refuses it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self._received += piece
        line, self._received = self._received.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        said = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.console.append(" ".join(str(part.get("value")) for part in said["args"]))
            case "Runtime.exceptionThrown":
                self.console.append(str(said["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(said["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])
        return message

    def open(self, path: Path, *, dark: bool = False) -> None:
        """Open a file, forget what was said before, and wait until its charts are drawn."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.console, self.requests = [], []
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && 'drawn' in document.documentElement.dataset")

    def run(self, script: str) -> Any:
        """Return the value of an expression, awaited. RuntimeError if it throws.

        The protocol evaluates it beside the page's Content Security Policy.
        """
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def processor_s(self) -> float:
        """Return the processor time that the thread of the page has taken, in seconds."""
        self.call("Performance.enable", timeDomain="threadTicks")
        metrics = self.call("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression is true. TimeoutError."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def resize(self, width: int, height: int) -> None:
        """Give the page another size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the left button at `start`, move to `end` and release it."""
        (x, y), (to_x, to_y) = start, end
        steps = [("mousePressed", x, y), ("mouseMoved", (x + to_x) / 2, (y + to_y) / 2), ("mouseMoved", to_x, to_y)]
        for kind, at_x, at_y in [*steps, ("mouseReleased", to_x, to_y)]:
            self.call("Input.dispatchMouseEvent", type=kind, x=at_x, y=at_y, button="left", buttons=1, clickCount=1)

    def key(self, name: str, text: str = "") -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            given = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, **given)
