"""The server process that browser tests talk to, the memory in it, and a visit to its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, Request, expect

from lukasa import Lukasa, Workspace

PATIENCE = 15_000  # milliseconds for what a busy machine may take its time with
PHONE = {"width": 375, "height": 740}
DESK = {"width": 1280, "height": 860}

expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True)
class House:
    """A served data folder. `memory` is the same memory, opened by the test's own process."""

    browser: Browser
    url: str
    link: str
    state: Any  # cookies of whoever entered by the link
    memory: Lukasa
    address_after_entering: str

    @property
    def main(self) -> Workspace:
        return self.memory.workspace("main")

    def at(self, view: str, workspace: str = "main", **query: str) -> str:
        path = "/".join(quote(part, safe="") for part in (workspace, *view.split("/")))
        return f"{self.url}/#/{path}" + (f"?{urlencode(query)}" if query else "")


@dataclass
class Visit:
    """A page, and all that happened around it."""

    house: House
    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, view: str, workspace: str = "main", **query: str) -> None:
        """Show a view and wait until all of it is there."""
        address = self.house.at(view, workspace, **query)
        fragment = "#" + address.partition("#")[2]
        if self.page.url.partition("#")[0] == f"{self.house.url}/" and self.page.url != address:
            self.page.evaluate("to => { location.hash = to; }", fragment)
        else:
            self.page.goto("about:blank")
            self.page.goto(address)
        expect(self.page.locator(f"main[data-shows={json.dumps(fragment)}]:not([aria-busy])")).to_be_visible()
        self.settled()

    def settled(self) -> None:
        """All parts that load later have loaded."""
        expect(self.page.locator(".loading")).to_have_count(0)

    def heading(self, text: str) -> Locator:
        return self.page.get_by_role("heading", name=text)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        self.button(name).first.click()

    def main(self) -> Locator:
        return self.page.locator("main")

    def says(self, text: str) -> None:
        expect(self.main()).to_contain_text(text)

    def dismiss(self, dialog: Dialog) -> None:
        """The page itself asks nothing this way; a script of somebody else's might."""
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def strangers(self) -> list[str]:
        """Requests to anywhere else."""
        return [url for url in self.requests if not url.startswith((self.house.url + "/", "about:"))]


@contextmanager
def open_house(browser: Browser, folder: Path) -> Iterator[House]:
    data = folder / "data"
    environment = {**os.environ, "LUKASA_EMBEDDER": "none", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "lukasa.surfaces.cli.main", "--data", str(data), "--json", "serve"]
    with Lukasa.open(data, embedder="none", principal="ada") as memory:
        memory.workspace("main")
        with subprocess.Popen(
            [*command, "--port", "0", "--no-open", "--no-worker"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        ) as server:
            try:
                told = _told(server)
                context = browser.new_context()
                page = context.new_page()
                page.goto(told["link"])
                expect(page.get_by_role("heading", name="What Lukasa knows")).to_be_visible()
                state, address = context.storage_state(), page.url
                context.close()
                yield House(browser, told["url"], told["link"], state, memory, address)
            finally:
                server.terminate()
                server.wait(30)


def _told(server: subprocess.Popen[str]) -> dict[str, str]:
    """What `lukasa serve --json` prints once it listens: a JSON document over several lines."""
    assert server.stdout is not None
    text = ""
    for line in server.stdout:
        text += line
        if line.startswith("}"):
            found: dict[str, str] = json.loads(text)
            return found
    raise AssertionError(f"the server did not start: {text}")


@contextmanager
def visiting(
    house: House, *, signed_in: bool = True, calm: bool = True, size: dict[str, int] | None = None, **how: Any
) -> Iterator[Visit]:
    """A context of its own. With `calm`, nothing may have gone wrong on the page by the end."""
    state = house.state if signed_in else None
    context: BrowserContext = house.browser.new_context(storage_state=state, viewport=size or DESK, **how)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    visit = Visit(house, page)
    page.on("request", lambda request: visit.requests.append(_plain(request)))
    page.on("pageerror", lambda error: visit.complaints.append(f"error: {error}"))
    page.on("console", lambda said: visit.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("dialog", visit.dismiss)
    try:
        yield visit
        if calm:
            assert visit.complaints == [], visit.complaints
        assert visit.strangers() == [], visit.strangers()
    finally:
        context.close()


def _plain(request: Request) -> str:
    parts = urlsplit(request.url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.netloc else request.url
