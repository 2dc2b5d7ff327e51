"""Results in one file, each bench between marks of its own, so that a rerun of one leaves the others alone."""

from __future__ import annotations

from pathlib import Path


def write_section(path: Path, name: str, body: str) -> None:
    """Replace what is between the marks of that name, or add both at the end."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else "# Results\n"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{body.strip()}\n{end}{after}", encoding="utf-8")
