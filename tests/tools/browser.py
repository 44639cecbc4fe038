# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through a pair of pipes by its DevTools protocol.
It waits for events and for answers, never for a time.
"""
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """Returns the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, path, width=1100, height=900):
        self.folder = tempfile.mkdtemp(prefix="uvarrow-chromium-")
        requests, self.out = os.pipe()
        self.answers, replies = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{requests} 4>&{replies}', "sh", path,
             "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--force-device-scale-factor=1", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder}",
             f"--window-size={width},{height}", "about:blank"],
            pass_fds=(requests, replies), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(requests)
        os.close(replies)
        self.buffer, self.number, self.session = b"", 0, None
        self.events = []  # not read so far
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise EOFError("Chromium has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        """Returns the result of a method; keeps the events before it."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            request["sessionId"] = self.session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[os.write(self.out, text):]
        while True:
            message = self.receive()
            if message.get("id") != self.number:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            else:
                return message["result"]

    def open(self, path):
        """Opens a page, from the disk or by its URL; returns when it has been
        loaded."""
        self.events = []
        self.call("Page.navigate", url=path if "://" in path
                  else "file://" + os.path.abspath(path))
        while not self.seen("Page.loadEventFired"):
            self.events.append(self.receive())

    def seen(self, method):
        """Returns the parameters of all events of a kind since open()."""
        return [event["params"] for event in self.events
                if event.get("method") == method]

    def evaluate(self, expression):
        """Returns the value of an expression, awaited if it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def screenshot(self):
        return self.call("Page.captureScreenshot", format="png")["data"]
