"""A real browser against a real server process on loopback. One of each for a module, a context for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.house import House, Visit, open_house, visiting

_QUIET = (
    "--no-sandbox --headless --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a module, not for the whole run: while it is open, its event loop runs in the thread of the tests."""
    found = os.environ.get("LUKASA_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "no Chromium here: run `make browser`, or set LUKASA_BROWSER to one"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=_QUIET.split())
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def house(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(browser, tmp_path_factory.mktemp("house")) as opened:
        yield opened


@pytest.fixture
def visit(house: House) -> Iterator[Visit]:
    """A signed-in page, which must not complain, nor ask anything of anybody else, by the end of the test."""
    with visiting(house) as opened:
        yield opened


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: LUKASA_SHOTS, or the test's own folder."""
    folder = Path(os.environ.get("LUKASA_SHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
