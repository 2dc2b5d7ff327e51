"""Upkeep: consolidate, maintain, promote, dispose, and add missing vectors."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["backfill", "consolidate", "crossing", "dispose", "maintain", "promote", "run"]

if TYPE_CHECKING:
    from lukasa.service.upkeep import backfill, consolidate, crossing, dispose, maintain, promote, run
else:
    __getattr__ = submodules(__name__, __all__)
