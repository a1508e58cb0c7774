"""A real browser (headless Chromium) on a local file, driven by its own protocol."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium")
SECONDS_TO_START = 60
Size = tuple[int, int]


class Tab:
    """One page in the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.violations: list[str] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        self._number += 1
        await self._socket.send_str(json.dumps({"id": self._number, "method": method, "params": parameters}))
        async for message in self._socket:
            said = json.loads(message.data)
            if said.get("method") == "Log.entryAdded":
                self.violations.append(said["params"]["entry"]["text"])
            if said.get("id") == self._number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result
        raise AssertionError("the browser is gone")

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        told = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def picture(self, file: Path) -> None:
        """Save a screenshot of the page."""
        told = await self.call("Page.captureScreenshot", captureBeyondViewport=False)
        file.write_bytes(base64.b64decode(told["data"]))


def in_browser(
    page: Path,
    look: Callable[[Tab], Coroutine[Any, Any, None]],
    *,
    size: Size = (1100, 900),
    is_dark: bool = False,
    has_scripts: bool = True,
) -> None:
    """Open a page in a window of this size and look at it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            str(CHROMIUM),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            f"--user-data-dir={profile}",
            "--remote-debugging-port=0",
            "about:blank",
        ]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = _port(Path(profile))
            asyncio.run(_look(port, page, look, size, {"is_dark": is_dark, "has_scripts": has_scripts}))
        finally:
            browser.kill()
            browser.wait()


def _port(profile: Path) -> int:
    file = profile / "DevToolsActivePort"
    end = time.monotonic() + SECONDS_TO_START
    while not file.is_file() or not file.read_text():
        assert time.monotonic() < end, "Chromium did not start"
        time.sleep(0.1)
    return int(file.read_text().splitlines()[0])


async def _look(
    port: int,
    page: Path,
    look: Callable[[Tab], Coroutine[Any, Any, None]],
    size: Size,
    how: dict[str, bool],
) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            (target,) = [each for each in await answer.json() if each["type"] == "page"]
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            width, height = size
            await tab.call(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=False,
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if how["is_dark"] else "light"}
            await tab.call("Emulation.setEmulatedMedia", features=[scheme])
            await tab.call("Emulation.setScriptExecutionDisabled", value=not how["has_scripts"])
            await tab.call("Log.enable")
            await tab.call("Page.enable")
            await tab.call("Page.navigate", url=page.resolve().as_uri())
            while await tab.run("document.readyState") != "complete":
                await asyncio.sleep(0.05)
            await look(tab)
