"""Take the pictures of the page that the README and the documentation show: `python -m tools.pictures [folder]`.

The page is the real one, of a real server, with the memory of `tools.demo`, at a fixed time. So a picture changes only
when the page does. Chromium takes them.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from lukasa import Lukasa
from lukasa.surfaces.http.serving import Address, Server, listen
from tools import demo

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
DESK, TELEPHONE = (1140, 720), (390, 844)
# File: the view, the scheme, and the size of the window.
PICTURES: dict[str, tuple[str, str, tuple[int, int]]] = {
    "home-light.png": ("home", "light", DESK),
    "home-dark.png": ("home", "dark", DESK),
    "home-phone.png": ("home", "light", TELEPHONE),
    "timeline.png": ("timeline?at=2026-05-10", "light", DESK),
    "inbox.png": ("inbox", "light", DESK),
}
LARGEST = 150_000  # bytes
_QUIET = "--no-sandbox --headless --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"


def take(folder: Path) -> list[Path]:
    """Take all pictures, and return their files."""
    found = os.environ.get("LUKASA_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise RuntimeError("no Chromium here: run `make browser`, or set LUKASA_BROWSER to one")
    folder.mkdir(parents=True, exist_ok=True)
    with _served() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_QUIET.split())
        entered = browser.new_context()
        entered.new_page().goto(link)
        entered.pages[0].wait_for_selector("main:not([aria-busy]) h1")
        state = entered.storage_state()
        made = [_taken(browser, state, link.partition("/#")[0], folder, name) for name in PICTURES]
        browser.close()
    return made


def _taken(browser: Browser, state: object, url: str, folder: Path, name: str) -> Path:
    view, scheme, (wide, high) = PICTURES[name]
    size = {"width": wide, "height": high}
    context = browser.new_context(storage_state=state, viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = context.new_page()
    page.clock.set_fixed_time(demo.NOW)
    page.goto(f"{url}/#/{demo.NAME}/{view}")
    _settled(page)
    file = folder / name
    file.write_bytes(smaller(page.screenshot()))
    context.close()
    return file


def _settled(page: Page) -> None:
    page.wait_for_selector("main:not([aria-busy]) h1")
    page.wait_for_selector(".loading", state="detached")
    page.wait_for_load_state("networkidle")


@contextmanager
def _served() -> Iterator[str]:
    """Serve the memory to show from a thread, and give the link to its page."""
    clock = demo.Clock()
    with (
        tempfile.TemporaryDirectory() as data,
        Lukasa.open(Path(data), embedder="none", clock=clock, principal="mia", project="") as memory,
    ):
        demo.furnish(memory, clock)
        server = Server(memory, listen(Address(port=0), memory))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            server.ready.wait(30)
            yield server.link()
        finally:
            server.stop()
            thread.join(30)


def shape(picture: bytes) -> tuple[int, int]:
    """Return the width and the height of a PNG."""
    wide, high = struct.unpack(">II", picture[16:24])
    return int(wide), int(high)


def smaller(picture: bytes) -> bytes:
    """Return a PNG packed as tightly as zlib can, without its notes: the pixels are the same."""
    head, parts, pixels, at = picture[:8], [], b"", 8
    while at < len(picture):
        length, kind = struct.unpack(">I4s", picture[at : at + 8])
        body = picture[at + 8 : at + 8 + length]
        if kind == b"IDAT":
            pixels += body
        elif kind in (b"IHDR", b"PLTE", b"tRNS"):
            parts.append((kind, body))
        at += 12 + length
    packed = zlib.compress(zlib.decompress(pixels), 9)
    chunks = [*parts, (b"IDAT", min(packed, pixels, key=len)), (b"IEND", b"")]
    return head + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


if __name__ == "__main__":
    for taken in take(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(f"{taken}  {taken.stat().st_size:,} bytes")
