"""Upkeep: consolidate, maintain, promote, dispose, and add missing vectors."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

if TYPE_CHECKING:
    from lukasa.service.upkeep import backfill, consolidate, dispose, maintain, promote, run

__all__ = ["backfill", "consolidate", "dispose", "maintain", "promote", "run"]

__getattr__ = submodules(__name__, __all__)
