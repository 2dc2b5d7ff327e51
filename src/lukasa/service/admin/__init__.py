"""Administration: grants, an overview, statistics, and removal for good."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = [
    "access",
    "activity",
    "backing_up",
    "board",
    "bookmarks",
    "erasing",
    "expecting",
    "home",
    "looking",
    "moving",
    "overview",
    "portable",
    "projects",
    "removing",
    "restoring",
    "scrubbing",
    "shown",
    "stats",
]

if TYPE_CHECKING:
    from lukasa.service.admin import (
        access,
        activity,
        backing_up,
        board,
        bookmarks,
        erasing,
        expecting,
        home,
        looking,
        moving,
        overview,
        portable,
        projects,
        removing,
        restoring,
        scrubbing,
        shown,
        stats,
    )
else:
    __getattr__ = submodules(__name__, __all__)
