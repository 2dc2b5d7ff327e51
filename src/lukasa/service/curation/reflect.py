"""Reflection: turn observations since the last reflection into proposals for the curated document, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
MOST_CHARS = 60_000  # characters of observations in one reflection, so that a model can read all of them at once
PAGE = 5000
COMPLETED = "reflection.completed"
NOTHING = {"observations": 0, "proposals": 0, "known": 0, "left": 0, "over": 0, "kept_percent": 0}
_SAID = frozenset(
    {
        "entry.put",
        "entry.merged",
        "entry.updated",
        "entry.accepted",
        "entry.restored",
        "entry.reopened",
        "entry.undone",
        "entry.promoted",
        "entry.consolidated",
    }
)


def _last(ctx: CallContext) -> Mapping[str, Any]:
    """Return what the last reflection recorded; empty if there was none."""
    told = ctx.local.events(subject=NAME, action=COMPLETED, limit=EVERY)
    return told[-1].detail if told else {}


def marker(ctx: CallContext) -> int:
    """Return the number of the last event that a reflection has read."""
    return int(_last(ctx).get("until", 0))


def draft(ctx: CallContext) -> JobDraft:
    """Return a job that reflects on all events up to now: one for each request, as an earlier one may have failed."""
    return JobDraft("reflect", f"reflect:operator:{new_id()}", {"after": marker(ctx), "until": ctx.local.head()[0]})


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
        if marker(ctx) != read["after"]:  # another reflection has read the same observations meanwhile
            task.commit("proposed", NOTHING, task.telemetry("reflect.passed", metadata=NOTHING))
        else:
            _propose(ctx, task, read, entries, result)
    return dict(task.output("proposed"))


def _read(ctx: CallContext) -> dict[str, Any]:
    """Return the ids of the observations to read, and the event up to which they go.

    The observations that the last reflection left over come first. `later` are those that the next one reads: they have
    no room here, or do not hold yet.
    """
    last = _last(ctx)
    after = until = int(last.get("until", 0))
    reading = _Reading(ctx)
    again = [id for id in last.get("over", ()) if not reading.take(str(id))]
    more = False
    while not more and (events := ctx.local.events(after=until, limit=PAGE)):
        reading.load([event.subject for event in events if event.action in _SAID])
        for event in events:
            if event.action in _SAID and not reading.take(event.subject):
                more = True
                break
            until = event.seq
    return {"after": after, "until": until, "more": more, "ids": list(reading.ids), "later": [*again, *reading.early]}


class _Reading:
    """The observations that one reflection reads: as many as it has room for, each once."""

    def __init__(self, ctx: CallContext) -> None:
        self._ctx, self._known = ctx, dict[str, Entry]()
        self._chars = 0
        self.ids: dict[str, None] = {}
        self.early: list[str] = []

    def load(self, ids: Sequence[str]) -> None:
        self._known |= self._ctx.local.entries(dict.fromkeys(id for id in ids if id not in self._known))

    def take(self, id: str) -> bool:
        """Take an observation, unless it is not for the page; return False if there is no room for it."""
        if id not in self._known:
            self.load([id])
        entry = self._known.get(id)
        if entry is None or id in self.ids or not _for_the_page(self._ctx, entry):
            return True
        if not entry.holds_at(self._ctx.now):
            if entry.valid_at is not None and entry.valid_at > self._ctx.now and id not in self.early:
                self.early.append(id)
            return True
        size = len(entry.content)
        if self.ids and (len(self.ids) >= MOST_READ or self._chars + size > MOST_CHARS):
            return False
        self.ids[id] = None
        self._chars += size
        return True


def _for_the_page(ctx: CallContext, entry: Entry) -> bool:
    """Say whether an entry is for the page: shared, lasting, active, no file, not held, and not sensitive.

    The page is in every context, so what one tenant knows is not for it.
    """
    lasts = ctx.spec.tier(entry.scope.tier).persistent
    return (
        lasts
        and not any(key in ctx.spec.custom_keys for key, value in entry.scope.anchor if value is not None)
        and entry.state is State.ACTIVE
        and entry.owner == SHARED
        and entry.path is None
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
        "over": len(result.over),
        "kept_percent": round(100 * after / before) if before else 0,
    }
    over = [*result.over, *read["later"]]
    detail = {**counts, "after": read["after"], "until": read["until"], "left": list(result.left), "over": over}
    operations: list[Operation] = [SaveAmendment(amendment, 0) for amendment in made]
    operations.append(Record(EventDraft(COMPLETED, NAME, detail)))
    if made:
        operations.append(Enqueue(JobDraft("triage", f"triage:{made[-1].id}")))
    if read["more"]:
        rest = {"after": read["until"], "until": task.store.head()[0]}
        operations.append(Enqueue(JobDraft("reflect", f"reflect:from:{read['until']}", rest)))
    task.commit("proposed", counts, *operations, task.telemetry("reflect.completed", metadata=counts))
