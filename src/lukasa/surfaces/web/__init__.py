"""The owner's page: its files, its charts and its rendered markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"  # index.html, and the files that it loads under assets/
