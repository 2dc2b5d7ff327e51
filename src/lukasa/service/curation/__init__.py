"""Curation: proposals, their review, the curated document, decision records and the log of work."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = [
    "curated_document",
    "decision_records",
    "kept_records",
    "notices",
    "reflect",
    "review",
    "slog_file",
    "triage",
]

if TYPE_CHECKING:
    from lukasa.service.curation import (
        curated_document,
        decision_records,
        kept_records,
        notices,
        reflect,
        review,
        slog_file,
        triage,
    )
else:
    __getattr__ = submodules(__name__, __all__)
