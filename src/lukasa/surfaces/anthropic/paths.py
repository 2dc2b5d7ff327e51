"""Map the paths of the memory tool to files, entries and pages.

/memories
├── named/VOICE.md …               the author's pages, read-only
├── <tier>/…                       files of each bound tier
├── <tier>/entries/<id>.md         its other entries, read-only
└── anything else                  files of the workspace tier
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto

from msgspec import Struct

from lukasa.model.errors import InvalidInput
from lukasa.service import inputs
from lukasa.spec.types import Tier
from lukasa.surfaces.anthropic.command_text import ToolRefusal, shown

ROOT = "/memories"
NAMED = "named"
ENTRIES = "entries"
_ENCODED = re.compile(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)


class Area(Enum):
    LAYOUT = auto()  # a folder that is always there
    PAGE = auto()  # one of the author's named entries
    ENTRY = auto()  # an entry without a path
    FILE = auto()  # a file, or a folder of files
    UNBOUND = auto()  # belongs to a tier that is not bound


class MemoryPath(Struct, frozen=True):
    """A path as the model gave it, its names below /memories, and what it addresses."""

    given: str
    names: tuple[str, ...]
    area: Area
    tier: str = ""

    @property
    def path(self) -> str:
        """The path of a file in memory: relative to /memories."""
        return "/".join(self.names)


class Layout(Struct, frozen=True):
    """The tiers of a spec, and the bound ones."""

    tiers: tuple[str, ...]
    bound: tuple[str, ...]
    default: str  # the tier of files without a tier in their path; empty if it is not bound

    @classmethod
    def of(cls, tiers: Sequence[Tier], bound: Sequence[Tier]) -> Layout:
        lasting = [tier.name for tier in bound if tier.persistent and tier.home == "workspace"]
        default = "workspace" if "workspace" in lasting else (lasting or [""])[-1]
        return cls(tuple(tier.name for tier in tiers), tuple(tier.name for tier in bound), default)

    def folders(self) -> list[tuple[str, ...]]:
        return [(NAMED,), *((tier,) for tier in self.bound)]

    def locate(self, given: str) -> MemoryPath:
        names = parse(given)
        if not names or names in self.folders():
            return MemoryPath(given, names, Area.LAYOUT)
        if names[0] == NAMED:
            return MemoryPath(given, names, Area.PAGE)
        if names[0] not in self.tiers:
            return MemoryPath(given, names, Area.FILE if self.default else Area.UNBOUND, self.default)
        if names[0] not in self.bound:
            return MemoryPath(given, names, Area.UNBOUND, names[0])
        if names[1] == ENTRIES:
            return MemoryPath(given, names, Area.ENTRY if len(names) > 2 else Area.LAYOUT, names[0])
        return MemoryPath(given, names, Area.FILE, names[0])


def parse(given: str) -> tuple[str, ...]:
    """Return the names of a path below /memories. A path that could lead outside is refused, not resolved."""
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise ToolRefusal(f"Error: Path must start with {ROOT}, got: {shown(given)}")
    names = [name for name in given.removeprefix(ROOT).split("/") if name not in ("", ".")]
    if ".." in names or "\\" in given or "\x00" in given or _ENCODED.search(given):
        raise ToolRefusal(f"Error: Path {shown(given)} would escape {ROOT} directory")
    if not names:
        return ()
    try:
        return tuple(inputs.path("/".join(names)).split("/"))
    except InvalidInput as error:
        raise ToolRefusal(f"Error: Invalid path {shown(given)}: {error.message}") from None
