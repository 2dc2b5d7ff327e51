"""The page: its files, the charts and the rendered markdown that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"  # index.html, and under assets/ what it loads
