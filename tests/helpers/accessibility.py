"""The faults that axe-core, a checker of accessibility, finds on a page."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from playwright.sync_api import Page

from tools.typescript_client import installed

_FOLDER = Path(__file__).parents[1] / "browser"
_RUN = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(
  (fault) => `${fault.id}: ${fault.help}: ${fault.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`
)"""


@cache
def _axe() -> str:
    with installed(_FOLDER) as modules:
        return (modules / "axe-core" / "axe.min.js").read_text("utf-8")


def faults(page: Page) -> list[str]:
    """Return what axe-core objects to, with its rules of WCAG and its best practices."""
    page.evaluate(_axe())
    found: list[str] = page.evaluate(_RUN)
    return found
