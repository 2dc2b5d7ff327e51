"""Sessions: conversations, notes, transcripts, and the facts that are taken from them."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["closing", "conversations", "distill", "hearing", "learned", "observe", "refine", "session", "transcripts"]

if TYPE_CHECKING:
    from lukasa.service.sessions import (
        closing,
        conversations,
        distill,
        hearing,
        learned,
        observe,
        refine,
        session,
        transcripts,
    )
else:
    __getattr__ = submodules(__name__, __all__)
