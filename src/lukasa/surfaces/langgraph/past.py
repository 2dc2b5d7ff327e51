"""Bring the memories of another LangGraph store in: any `BaseStore`, asked by its own methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from langgraph.store.base import BaseStore, Item

from lukasa.model.past import PastStatement, words_of
from lukasa.service.past import statements
from lukasa.service.workspace import Workspace

PAGE = 100
FORMAT = "langgraph"  # the same as of the files of its SqliteStore: what comes by both ways comes once


def import_store(
    workspace: Workspace, store: BaseStore, *, namespace: Sequence[str] = (), tier: str | None = None
) -> Mapping[str, int]:
    """Bring the items of a store into a workspace, each once, and return how many had which outcome.

    `namespace` leaves out items of other namespaces. The words of an item are those of its `text`, `content`, `memory`
    or `data`, and else its JSON. A second call finds all of them known.
    """
    ctx = workspace.ctx.in_project("")
    return statements.bring_all(ctx, tier or ctx.default_tier(), _statements(store, tuple(namespace)))


def _statements(store: BaseStore, namespace: tuple[str, ...]) -> Iterator[PastStatement]:
    offset = 0
    while found := store.search(namespace, limit=PAGE, offset=offset):
        yield from filter(None, map(_statement, found))
        offset += PAGE
        if len(found) < PAGE:
            return


def _statement(item: Item) -> PastStatement | None:
    said = words_of(item.value)
    where = ".".join(item.namespace)
    place, about = f"{where}/{item.key}", {"namespace": where, "key": item.key}
    if not said:
        return None
    return PastStatement(
        FORMAT, said, "a LangGraph store", f"item {place}", item.updated_at, key=place, by=FORMAT, about=about
    )
