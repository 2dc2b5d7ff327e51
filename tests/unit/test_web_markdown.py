"""Markdown of pages: rendered, and harmless."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from lukasa.surfaces.web.rendering import rendered

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "![x](http://evil.example/beacon.png)",
    '[x](http://a.example "onmouseover=alert(1)")',
    "<a href='javascript:alert(1)'>x</a>",
    "`<svg onload=alert(1)>`",
    "| <b onclick=alert(1)> |\n| - |\n| <iframe src=//evil.example> |",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
]


class Found(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def parsed(text: str) -> Found:
    found = Found()
    found.feed(rendered(text))
    return found


def test_markdown_is_rendered() -> None:
    """M8, U5: headings, lists, code, tables and links."""
    found = parsed("# A\n\n- *b*\n\n```\nc\n```\n\n|d|\n|-|\n|e|\n\n[f](https://example.org)")
    assert {"h1", "ul", "em", "pre", "table", "a"} <= found.tags
    assert ("href", "https://example.org") in found.attributes


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_active_comes_out(payload: str) -> None:
    """T55: no raw HTML, no image, no script, no handler, and no link but to the web or to mail."""
    found = parsed(payload)
    assert not found.tags & {"script", "img", "svg", "iframe", "b", "object", "style"}
    assert all(
        name in ("href", "title", "class", "style") and not name.startswith("on") for name, _ in found.attributes
    )
    links = [value for name, value in found.attributes if name == "href"]
    assert all(link.startswith(("http://", "https://", "mailto:", "#")) for link in links)
