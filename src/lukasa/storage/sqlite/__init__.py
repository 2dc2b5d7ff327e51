"""A store on SQLite: see `store` for the class, `opening` for the files, `sql` for every statement."""

from typing import TYPE_CHECKING

from lukasa.model import submodules
from lukasa.storage.sqlite.opening import Role
from lukasa.storage.sqlite.store import SqliteStore

_ON_DEMAND = ("checking", "grants", "items", "jobs", "scrubbing", "telemetry", "transcripts")

if TYPE_CHECKING:
    from lukasa.storage.sqlite import checking, grants, items, jobs, scrubbing, telemetry, transcripts
else:
    __getattr__ = submodules(__name__, _ON_DEMAND)


__all__ = [
    "Role",
    "SqliteStore",
    "checking",
    "grants",
    "items",
    "jobs",
    "scrubbing",
    "telemetry",
    "transcripts",
]
