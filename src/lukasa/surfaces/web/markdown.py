"""Markdown as HTML that can do nothing: no raw HTML, no images, and links only to the web and to mail."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ALLOWED = ("http://", "https://", "mailto:", "#")


def rendered(text: str) -> str:
    """A page as HTML. What a link may point at is checked here and again where the page builds it."""
    # markdown-it comes with the server's packages; a process that renders nothing does not load it.
    parser: Any = import_module("markdown_it").MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable("table").enable("strikethrough").disable("image")  # an image would be a request to somewhere else
    parser.validateLink = lambda url: url.strip().lower().startswith(_ALLOWED)
    return str(parser.render(text))
