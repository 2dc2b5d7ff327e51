"""Memory for AI agents: one spec-driven engine, embedded, offline.

from mnemon import Mnemon

memory = Mnemon.open()
world = memory.workspace("novel")
world.put("workspace", "The villain is called Malachar", importance=0.8)
for hit in world.read("who is the villain?"):
    print(hit.content, hit.score.final)
print(world.context("continue chapter three"))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemon.app import Mnemon, Settings
    from mnemon.model.entry import Entry, SourceLink
    from mnemon.model.errors import MnemonError
    from mnemon.model.values import Authority, Curator, Kind, Lifetime, State, Trust
    from mnemon.read.rank import Hit
    from mnemon.service.reading import Recall
    from mnemon.service.workspace import Workspace
    from mnemon.service.writing import Memo, Written

__version__ = "0.1.0"

# Loaded on first use: a hook that only asks for the version must not pay for the engine.
_HOMES = {
    "Mnemon": "mnemon.app",
    "Settings": "mnemon.app",
    "Entry": "mnemon.model.entry",
    "SourceLink": "mnemon.model.entry",
    "MnemonError": "mnemon.model.errors",
    "Authority": "mnemon.model.values",
    "Curator": "mnemon.model.values",
    "Kind": "mnemon.model.values",
    "Lifetime": "mnemon.model.values",
    "State": "mnemon.model.values",
    "Trust": "mnemon.model.values",
    "Hit": "mnemon.read.rank",
    "Recall": "mnemon.service.reading",
    "Workspace": "mnemon.service.workspace",
    "Memo": "mnemon.service.writing",
    "Written": "mnemon.service.writing",
}

__all__ = [
    "Authority",
    "Curator",
    "Entry",
    "Hit",
    "Kind",
    "Lifetime",
    "Memo",
    "Mnemon",
    "MnemonError",
    "Recall",
    "Settings",
    "SourceLink",
    "State",
    "Trust",
    "Workspace",
    "Written",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mnemon' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
