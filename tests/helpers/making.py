"""Values for tests, with every field that a test does not care about filled in."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from lukasa.model.entry import Entry, Scope
from lukasa.model.ids import new_id, short_id
from lukasa.model.values import Curator, Kind, Lifetime, Origin, Trust
from lukasa.read.context import ContextDocument

# Lines for a spec: the rules may retire what a new statement replaces.
RETIRE = '\n[behaviour.conflict]\nby_rule = "retire"\nreason = "Only the latest value counts here."\n'
WORKSPACE = Scope("workspace", (("workspace", "w1"),))


class FixedClock:
    """A clock that a test moves."""

    def __init__(self, now: datetime | None = None) -> None:
        self.time = now or datetime(2026, 11, 15, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def make_entry(
    content: str = "The villain is called Malachar",
    *,
    at: datetime | None = None,
    trust: Trust = Trust.AUTHOR,
    kind: Kind = Kind.SEMANTIC,
    importance: float = 0.5,
    scope: Scope = WORKSPACE,
    tags: tuple[str, ...] = (),
) -> Entry:
    moment = at or datetime(2026, 11, 15, 12, tzinfo=UTC)
    return Entry(
        id=new_id(),
        scope=scope,
        content=content,
        kind=kind,
        lifetime=Lifetime.LONG_TERM,
        curator=Curator.AUTHOR,
        source="user",
        importance=importance,
        origin=Origin("tester", "library", "in-process", trust),
        trust=trust,
        created_at=moment,
        updated_at=moment,
        confirmed_at=moment,
        tags=tags,
    )


def shortened(document: ContextDocument) -> ContextDocument:
    """A document as its text gives it back, with short ids."""
    return replace(
        document,
        standing=tuple(replace(one, id=short_id(one.id)) for one in document.standing),
        recalled=tuple(
            replace(part, items=tuple(replace(one, id=short_id(one.id)) for one in part.items))
            for part in document.recalled
        ),
    )
