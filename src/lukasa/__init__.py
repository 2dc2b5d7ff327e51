"""Memory for AI agents: one spec-driven engine, embedded, offline.

from lukasa import Lukasa

memory = Lukasa.open()
world = memory.workspace("novel")
world.put("workspace", "The villain is called Malachar", importance=0.8)
for hit in world.read("who is the villain?"):
    print(hit.content, hit.score.final)
print(world.context("continue chapter three"))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lukasa.app import Lukasa, Settings
    from lukasa.model.entry import Entry, SourceLink
    from lukasa.model.errors import LukasaError
    from lukasa.model.values import Authority, Curator, Kind, Lifetime, Relation, State, Trust
    from lukasa.read.rank import Hit
    from lukasa.service.entries.put import Memo, Written
    from lukasa.service.retrieval.read import Recall
    from lukasa.service.workspace import Workspace

__version__ = "0.1.0"

# Loaded on first use: a hook that only asks for the version must not pay for the engine.
_HOMES = {
    "Lukasa": "lukasa.app",
    "Settings": "lukasa.app",
    "Entry": "lukasa.model.entry",
    "SourceLink": "lukasa.model.entry",
    "LukasaError": "lukasa.model.errors",
    "Authority": "lukasa.model.values",
    "Curator": "lukasa.model.values",
    "Kind": "lukasa.model.values",
    "Lifetime": "lukasa.model.values",
    "Relation": "lukasa.model.values",
    "State": "lukasa.model.values",
    "Trust": "lukasa.model.values",
    "Hit": "lukasa.read.rank",
    "Recall": "lukasa.service.retrieval.read",
    "Workspace": "lukasa.service.workspace",
    "Memo": "lukasa.service.entries.put",
    "Written": "lukasa.service.entries.put",
}

__all__ = [
    "Authority",
    "Curator",
    "Entry",
    "Hit",
    "Kind",
    "Lifetime",
    "Lukasa",
    "LukasaError",
    "Memo",
    "Recall",
    "Relation",
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
        raise AttributeError(f"module 'lukasa' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
