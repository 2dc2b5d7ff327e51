"""Reflection: turn observations since the last reflection into proposals for the curated document, each once."""

from __future__ import annotations

from typing import Any

from lukasa.curated import reflection
from lukasa.curated.document import NAME
from lukasa.curated.reflection import Change, Reflection
from lukasa.model.amendment import Amendment
from lukasa.model.entry import Entry
from lukasa.model.events import EventDraft
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.text import content_key
from lukasa.model.values import SHARED, State
from lukasa.service.call import CallContext
from lukasa.service.curation import curated_document
from lukasa.service.curation.curated_document import EVERY
from lukasa.service.instrument import verb
from lukasa.service.jobs.task import Task, ask
from lukasa.spec.prompts import prompt
from lukasa.storage.operations import Enqueue, Operation, Record, SaveAmendment

MOST_READ = 200  # observations in one reflection
PAGE = 5000
COMPLETED = "reflection.completed"
_SAID = frozenset({"entry.put", "entry.merged", "entry.updated", "entry.accepted", "entry.restored", "entry.undone"})


def marker(ctx: CallContext) -> int:
    """Return the number of the last event that a reflection has read."""
    told = ctx.local.events(subject=NAME, action=COMPLETED, limit=EVERY)
    return int(told[-1].detail["until"]) if told else 0


def draft(ctx: CallContext) -> JobDraft:
    """Return a job that reflects on all events up to now."""
    head, _ = ctx.local.head()
    return JobDraft("reflect", f"reflect:to:{head}", {"after": marker(ctx), "until": head})


@verb("job", "ask")
def ask_for(ctx: CallContext) -> str:
    """Queue a reflection on all events up to now; return the key of its job."""
    asked = draft(ctx)
    ctx.apply(ctx.local, Enqueue(asked))
    return asked.key


def reflect(ctx: CallContext, task: Task) -> dict[str, Any]:
    """O3: read the observations since the last reflection and the page, and write proposals."""
    read = task.once("read", lambda: _read(ctx))
    entries = [e for id, e in task.store.entries(read["ids"]).items()]
    entries.sort(key=lambda e: read["ids"].index(e.id))
    result = _reflected(ctx, task, entries) if entries else Reflection((), ())
    if not task.journaled("proposed"):
        _propose(ctx, task, read, entries, result)
    return dict(task.output("proposed"))


def _read(ctx: CallContext) -> dict[str, Any]:
    """Return the ids of the observations to read, and the event up to which they go."""
    after = until = marker(ctx)
    ids: dict[str, None] = {}
    more = False
    while events := ctx.local.events(after=until, limit=PAGE):
        for event in events:
            if len(ids) >= MOST_READ:
                more = True
                break
            until = event.seq
            if event.action in _SAID:
                ids[event.subject] = None
        if more:
            break
    found = ctx.local.entries(ids)
    readable = [id for id in ids if id in found and _readable(ctx, found[id])]
    return {"after": after, "until": until, "more": more, "ids": readable}


def _readable(ctx: CallContext, entry: Entry) -> bool:
    """Say whether an entry is for the page: shared, lasting, in force, no file, not held, and not sensitive.

    The page is in every context, so what one tenant knows is not for it.
    """
    lasts = ctx.spec.tier(entry.scope.tier).persistent
    return (
        lasts
        and not any(key in ctx.spec.custom_keys for key, value in entry.scope.anchor if value is not None)
        and entry.state is State.ACTIVE
        and entry.owner == SHARED
        and entry.path is None
        and entry.holds_at(ctx.now)
        and entry.source != "curated"
        and not entry.sensitive
    )


def _reflected(ctx: CallContext, task: Task, entries: list[Entry]) -> Reflection:
    body = curated_document.body(ctx)
    if task.chat is None:
        return reflection.by_rules(entries, body)
    ids = [entry.id for entry in entries]
    categories = ", ".join(concept.id for concept in ctx.taxonomy.concepts)
    asked = prompt("reflector", ctx.prompts, categories=categories)
    changes = ask(
        task,
        "reflected",
        asked,
        reflection.briefing(entries, body),
        lambda data: reflection.read_answer(data, ids, ctx.taxonomy),
    )
    used = {id for change in changes for id in change.sources}
    return Reflection(changes, tuple(id for id in ids if id not in used))


def _propose(ctx: CallContext, task: Task, read: dict[str, Any], entries: list[Entry], result: Reflection) -> None:
    """Commit the proposals, the mark, the triage job and the telemetry event together."""
    known = {content_key(a.change) for a in ctx.local.amendments(limit=EVERY)}
    new: dict[str, Change] = {}
    for change in result.changes:
        key = content_key(change.change)
        if key not in known:
            new.setdefault(key, change)
    now = ctx.now
    made = [Amendment(new_id(), c.section, c.change, c.confidence, c.sources, now, now) for c in new.values()]
    before, after = sum(len(e.content) for e in entries), sum(len(a.change) for a in made)
    counts = {
        "observations": len(entries),
        "proposals": len(made),
        "known": len(result.changes) - len(made),
        "left": len(result.left),
        "kept_percent": round(100 * after / before) if before else 0,
    }
    detail = {**counts, "after": read["after"], "until": read["until"], "left": list(result.left)}
    operations: list[Operation] = [SaveAmendment(amendment, 0) for amendment in made]
    operations.append(Record(EventDraft(COMPLETED, NAME, detail)))
    if made:
        operations.append(Enqueue(JobDraft("triage", f"triage:{made[-1].id}")))
    if read["more"]:
        rest = {"after": read["until"], "until": task.store.head()[0]}
        operations.append(Enqueue(JobDraft("reflect", f"reflect:from:{read['until']}", rest)))
    task.commit("proposed", counts, *operations, task.telemetry("reflect.completed", metadata=counts))
