"""Hooks of the site builder: pages of the repository that are not in `docs`, and links to them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# A page of the site, and the file of the repository that it is.
FROM_REPOSITORY = {"results.md": "bench/RESULTS.md", "changelog.md": "CHANGELOG.md"}
PICTURES = {"speed.svg": "bench/speed.svg"}
_LINK = re.compile(r"(\]\()([^)\s:#]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand elsewhere in the repository."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the site builder has an environment of its own

    for page, source in FROM_REPOSITORY.items():
        text = relinked((ROOT / source).read_text("utf-8"), source, page)
        files.append(File.generated(config, page, content=text))
    for picture, source in PICTURES.items():
        files.append(File.generated(config, picture, content=(ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at pages of the site, where a page links to a file of the repository that the site has too."""
    path = page.file.src_uri
    return markdown if path in FROM_REPOSITORY else relinked(markdown, f"docs/{path}", path)


def relinked(text: str, source: str, page: str) -> str:
    """Return a page's text with links for the site; `source` is its path in the repository, `page` that in the site."""
    places = {of: path for path, of in {**FROM_REPOSITORY, **PICTURES}.items()}

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        place = places.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        return found[0] if not place else found[1] + posixpath.relpath(place, posixpath.dirname(page) or ".")

    return _LINK.sub(link, text)
