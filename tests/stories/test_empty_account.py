"""An account in which nothing is remembered costs a read one look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from lukasa import Workspace


class Watched:
    """A store that notes what it is asked."""

    def __init__(self, store: Any) -> None:
        self._store, self.asked = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._store, name)

    @contextmanager
    def snapshot(self) -> Iterator[Watched]:
        with self._store.snapshot() as inner:
            seen = Watched(inner)
            seen.asked = self.asked
            yield seen


def test_an_empty_account_is_looked_at_and_not_searched(world: Workspace) -> None:
    """R3, C1: until something is in it; from then on it is searched like any other place."""
    world.put("workspace", "the lantern hangs at the pier of Veyra")
    account = Watched(world.ctx.account)
    here = Workspace(replace(world.ctx, account=account))
    assert [hit.content for hit in here.read("where is the lantern?")] == ["the lantern hangs at the pier of Veyra"]
    assert account.asked == ["size"]
    here.put("account", "the lantern was a present from Malachar")
    account.asked.clear()
    assert len(here.read("where is the lantern?")) == 2
    assert {"size", "keyword"} <= set(account.asked)


def test_an_empty_account_that_is_asked_alone_answers_nothing(world: Workspace) -> None:
    """R3: the only place that is asked for is searched, also if it is empty."""
    world.put("workspace", "the lantern hangs at the pier of Veyra")
    assert list(world.read("where is the lantern?", tier="account")) == []
