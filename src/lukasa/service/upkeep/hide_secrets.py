"""Mark entries that hold a secret and were stored before Lukasa looked for secrets of its form.

A new text is redacted or marked when it is written. This job looks once at all texts that are there already, whenever
the detector has learned something. It changes no word: history is never rewritten, and the words may be the owner's.
A marked entry shows its secrets to the owner alone; `erase` and `scrub` remove it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from lukasa.model.entry import SENSITIVE, Entry
from lukasa.model.secrets import holds_secret
from lukasa.model.selection import Selection
from lukasa.model.values import Visibility
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task
from lukasa.service.upkeep.run import Upkeep
from lukasa.storage.operations import SaveEntry
from lukasa.storage.port import Store

PAGE = 500
CAUSE = "it holds a secret: only the owner sees it from now on"


def hide_secrets(ctx: CallContext, task: Task) -> dict[str, Any]:
    """Mark every entry of the workspace and the account that holds a secret, in any state."""
    upkeep = Upkeep(ctx, task)
    for store in (ctx.local, ctx.account):
        for page in _pages(store):
            for entry in page:
                if SENSITIVE not in entry.metadata and _holds_secret(entry):
                    upkeep.commit(store, "marked", [_marked(entry)])
    return upkeep.finish()


def _holds_secret(entry: Entry) -> bool:
    return holds_secret(entry.content) or holds_secret([*entry.tags, entry.source, entry.metadata])


def _marked(entry: Entry) -> SaveEntry:
    marked = replace(entry, metadata={**entry.metadata, SENSITIVE: True}, version=entry.version + 1)
    return SaveEntry(marked, entry.version, "entry.updated", CAUSE)


def _pages(store: Store) -> Iterator[list[Entry]]:
    selection = Selection(tuple(count.scope for count in store.census()), frozenset(Visibility), None)
    after = None
    while page := store.find(selection, limit=PAGE, after=after):
        yield page
        after = page[-1].id
