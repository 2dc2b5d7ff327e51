"""Categorise: ask a language model for the category of entries where the words of the taxonomy leave doubt.

The write queues the job and does not wait for it. Until the model has answered, and without an answer, an entry has no
category.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lukasa.curated.reflection import UNSORTED
from lukasa.model.entry import Category, Entry, GateVerdict
from lukasa.model.errors import ChatMalformed, InvalidInput
from lukasa.model.values import Gate, State, Trust
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task, ask
from lukasa.service.upkeep.run import COMPLETED, Upkeep
from lukasa.spec.prompts import prompt
from lukasa.spec.taxonomy import Taxonomy
from lukasa.storage.operations import SaveEntry, Verdict
from lukasa.storage.port import Store
from lukasa.write.check import PREFERRED

BATCH = 40  # statements in one question
SECONDS = 60.0
SURE = 0.75  # the confidence in a category that a model names and no word supports
PAGE = 5000
_WRITTEN = frozenset({"entry.put", "entry.held", "entry.updated"})


def categorise(ctx: CallContext, task: Task) -> dict[str, Any]:
    """W7: ask the model, in batches, about the entries without a category. Without a model they stay as they are."""
    if task.journaled(COMPLETED):
        return dict(task.output(COMPLETED))
    up = Upkeep(ctx, task)
    store = ctx.account if task.job.payload["home"] == "account" else ctx.local
    ids = task.once("unsorted", lambda: _unsorted(store, int(task.job.payload["after"])))
    for number, start in enumerate(range(0, len(ids), BATCH)):
        if task.chat is not None:
            _sort(up, task, store, ids[start : start + BATCH], number)
    return up.finish()


def _unsorted(store: Store, after: int) -> list[str]:
    """Return the ids of the entries written since an event that have no category."""
    ids: dict[str, None] = {}
    while events := store.events(after=after, limit=PAGE):
        ids |= dict.fromkeys(event.subject for event in events if event.action in _WRITTEN)
        after = events[-1].seq
    return [id for id, entry in store.entries(ids).items() if _open(entry)]


def _open(entry: Entry) -> bool:
    standing = entry.state in (State.ACTIVE, State.HELD)
    return standing and entry.category is None and entry.path is None and not entry.sensitive


def _sort(up: Upkeep, task: Task, store: Store, ids: Sequence[str], number: int) -> None:
    """Ask about a batch, and give each entry its category; what was edited meanwhile keeps its own."""
    ctx, known = up.ctx, store.entries(ids)
    shown = task.once(f"shown:{number}", lambda: {id: _mark(entry) for id, entry in known.items()})
    texts = [known[id].content if id in known else "" for id in shown]
    if not texts:
        return
    asked = prompt("categorise", ctx.prompts, categories=_described(ctx.taxonomy))
    step, count, taxonomy = f"ask:{number}", len(texts), ctx.taxonomy
    try:
        named = ask(task, step, asked, _briefing(texts), lambda data: _answer(data, count, taxonomy), timeout=SECONDS)
    except ChatMalformed as error:
        up.drop("categorised", list(shown), error.message, step=f"dropped:{number}")
        return
    now = store.entries(shown)
    model = task.chat.name if task.chat is not None else ""
    for id, name in zip(shown, named, strict=True):
        entry, step = now.get(id), f"sorted:{number}:{id}"
        if entry is None or name == UNSORTED or task.journaled(step) or not _open(entry):
            continue
        if _mark(entry) == shown[id]:
            up.commit(store, "categorised", [_saved(ctx, entry, name, model)], step=step)


def _mark(entry: Entry) -> str:
    """Return a digest of an entry's text, to see whether it has changed."""
    return hashlib.sha256(entry.content.encode()).hexdigest()[:16]


def _described(taxonomy: Taxonomy) -> str:
    return "\n".join(f"- `{concept.id}`: {concept.definition}" for concept in taxonomy.concepts)


def _briefing(texts: Sequence[str]) -> str:
    return "\n".join(json.dumps({"n": n, "text": text}, ensure_ascii=False) for n, text in enumerate(texts, 1))


def _answer(data: Mapping[str, Any], count: int, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Read the category of each statement, in order. InvalidInput unless each has one that the taxonomy knows."""
    listed = data.get("categories")
    named = dict(_named(listed if isinstance(listed, list) else [], taxonomy))
    missing = [n for n in range(1, count + 1) if n not in named]
    if missing:
        raise InvalidInput(
            f'"categories" must have a known category for each n from 1 to {count}; {missing[0]} has none'
        )
    return tuple(named[n] for n in range(1, count + 1))


def _named(listed: Sequence[Any], taxonomy: Taxonomy) -> Iterator[tuple[int, str]]:
    known = {UNSORTED, *(concept.id for concept in taxonomy.concepts)}
    for item in listed:
        number = item.get("n") if isinstance(item, dict) else None
        name = item.get("category") if isinstance(item, dict) else None
        if isinstance(number, int) and isinstance(name, str) and name in known:
            yield number, name


def _saved(ctx: CallContext, entry: Entry, name: str, model: str) -> SaveEntry:
    """Return the change that gives an entry its category. An untrusted preference or rule waits for a person."""
    cause = f"the words did not decide the category; model {model} names {name}"
    verdict = Verdict("categorise", name, cause)
    sorted_ = replace(
        entry, category=Category(name, SURE, ctx.taxonomy.version), updated_at=ctx.now, version=entry.version + 1
    )
    if name not in PREFERRED or entry.trust is not Trust.UNTRUSTED or entry.state is State.HELD:
        return SaveEntry(sorted_, entry.version, "entry.categorised", cause, (verdict,))
    why = f"{cause}: procedures and preferences of untrusted origin wait for a person"
    gate = GateVerdict(Gate.HOLD, 1.0, why)
    held = sorted_.moved(State.HELD, at=ctx.now, cause=why, actor=str(ctx.actor), gate=gate)
    return SaveEntry(held, entry.version, "entry.held", why, (verdict,))
