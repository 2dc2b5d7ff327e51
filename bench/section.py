"""Results in one file, each bench in its own section, so that a rerun of one leaves the others alone."""

from __future__ import annotations

import re
from pathlib import Path


def write_section(path: Path, title: str, body: str) -> None:
    """Replace the section of that title, or add it at the end."""
    text = path.read_text(encoding="utf-8") if path.exists() else "# Results\n"
    section = f"## {title}\n\n{body.strip()}\n"
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        text = f"{text.rstrip()}\n\n{section}"
    else:
        after = text[found.end() :]
        text = text[: found.start()] + section + (f"\n{after}" if after else "")
    path.write_text(text, encoding="utf-8")
