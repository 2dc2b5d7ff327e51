"""Curation: proposals, their review, the curated document, decision records and the log of work."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

if TYPE_CHECKING:
    from lukasa.service.curation import decisions, document, reflect, review, slog, triage

__all__ = ["decisions", "document", "reflect", "review", "slog", "triage"]

__getattr__ = submodules(__name__, __all__)
