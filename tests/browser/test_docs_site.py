"""The documentation as a site: it builds without a warning, its links hold, and it needs no other server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / ".venv-docs" / "bin" / "mkdocs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, in a folder of its own."""
    assert BUILDER.exists(), "no site builder here: run `make docs`"
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [BUILDER, "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


class Parsed(HTMLParser):
    """What a built page links to, and what can be linked to in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := given.get(key))}
        if tag == "a" and (target := given.get("href")):
            self.links.append(target)
        elif target := given.get("src") or given.get("srcset") or (given.get("href") if tag == "link" else None):
            self.loads.append(target)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    return {file: Parsed(file) for file in sorted(site.rglob("*.html")) if file.name != "404.html"}


def test_every_page_is_built(site: Path, pages: dict[Path, Parsed]) -> None:
    """Docs: each page of the folder, and the results and the changelog, which stand elsewhere in the repository."""
    written = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert {page.relative_to(site) for page in pages} == written | {Path("results.html"), Path("changelog.html")}


def test_every_link_of_the_site_holds(site: Path, pages: dict[Path, Parsed]) -> None:
    """Docs: each internal link leads to a file of the site, and its anchor to a place there."""
    broken = []
    for page, parsed in pages.items():
        for target in parsed.links:
            split = urlsplit(target)
            if split.scheme:
                continue
            file = (page.parent / unquote(split.path)).resolve() if split.path else page
            file = file / "index.html" if file.is_dir() else file
            anchor = unquote(split.fragment)
            if not file.is_file() or (anchor and file in pages and anchor not in pages[file].ids):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []
    assert sum(len(parsed.links) for parsed in pages.values()) > 10_000


def test_the_site_loads_nothing_from_elsewhere(site: Path, pages: dict[Path, Parsed]) -> None:
    """Docs: styles, scripts and pictures are files of the site."""
    for page, parsed in pages.items():
        for target in parsed.loads:
            assert not urlsplit(target).scheme, f"{page.relative_to(site)} loads {target}"
            assert (page.parent / unquote(urlsplit(target).path)).is_file(), f"{page.relative_to(site)}: {target}"


@pytest.fixture
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Somebody who opens a file of the site, without a server; the test fails if anything is asked of one."""
    width: int
    scheme: Literal["light", "dark"]
    width, scheme = getattr(request, "param", (1440, "light"))
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    context.close()


@pytest.mark.parametrize(
    "reader", [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")], indirect=True, ids=str
)
@pytest.mark.parametrize("name", ["index", "tutorial", "how-to/use-the-web-page", "reference/glossary", "results"])
def test_a_page_fits_its_screen(reader: Page, site: Path, shots: Path, name: str) -> None:
    """Docs: at the width of a desk and of a phone, light and dark, nothing sticks out, and every picture is there."""
    reader.goto((site / f"{name}.html").as_uri())
    size = reader.viewport_size
    assert size is not None
    scheme = reader.evaluate("document.body.getAttribute('data-md-color-scheme')")
    reader.screenshot(path=shots / f"docs-{name.replace('/', '-')}-{size['width']}-{scheme}.png")
    assert reader.evaluate("document.documentElement.scrollWidth") <= size["width"]
    missing = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    assert reader.evaluate(missing) == []
    dark = reader.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert scheme == ("slate" if dark else "default")


def test_search_works_on_files(reader: Page, site: Path) -> None:
    """Docs: a reader without a server searches, and the first hit leads to a page that has the word."""
    reader.goto((site / "index.html").as_uri())
    reader.keyboard.press("/")
    reader.keyboard.type("fencing token")
    hit = reader.locator(".md-search-result__link").first
    hit.wait_for()
    hit.click()
    reader.wait_for_url("**/*.html*")
    assert "fencing token" in reader.inner_text("article").lower()


def test_a_reader_finds_a_page_by_the_navigation(reader: Page, site: Path) -> None:
    """Docs: how-tos are grouped by what people want."""
    reader.goto((site / "index.html").as_uri())
    reader.get_by_role("link", name="How to", exact=True).first.click()
    reader.get_by_role("link", name="Erase a person", exact=True).first.click()
    assert reader.inner_text("article h1").startswith("Erase a person")
