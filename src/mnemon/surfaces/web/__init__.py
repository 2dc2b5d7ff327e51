"""The page: its files, the charts and the rendered markdown that it shows."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
