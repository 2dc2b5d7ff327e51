"""Resolve: let a language model judge a possible contradiction after the write: ADD, UPDATE, DELETE or NOOP.

The decision holds for the versions that the model saw, is recorded with its reason, and can be undone. A less trusted
statement never overrules a more trusted one: it is held for a person instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.entry import Entry, GateVerdict
from lukasa.model.errors import ChatMalformed, InvalidInput
from lukasa.model.values import Gate, Relation, State
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task, ask
from lukasa.service.upkeep.run import COMPLETED, Upkeep
from lukasa.spec.prompts import prompt
from lukasa.storage.operations import SaveEntry, SaveRivalry, Verdict
from lukasa.storage.port import Store
from lukasa.write.plan import Setting, retire

DECISIONS = ("add", "update", "delete", "noop")


class ModelRuling(Struct, frozen=True):
    """The decision of a model about one older statement."""

    position: int
    decision: str
    reason: str


def resolve(ctx: CallContext, task: Task) -> dict[str, Any]:
    """W4: ask the model and carry out its decisions. Without a model the decision of the rules holds."""
    if task.journaled(COMPLETED):
        return dict(task.output(COMPLETED))
    up = Upkeep(ctx, task)
    store = ctx.store(task.job.payload["tier"])
    new, old = _present(store, task.job.payload)
    if new is None or not old:
        up.drop("resolved", [task.job.payload["entry"]], "it has changed since, and so has the question")
    elif task.chat is not None:
        _decide(up, task, store, new, old)
    return up.finish()


def _present(store: Store, payload: Mapping[str, Any]) -> tuple[Entry | None, list[Entry]]:
    """Return the statements, if they have not changed since the question arose."""
    versions = {payload["entry"]: payload["version"], **dict(payload["against"])}
    found = store.entries(versions)
    same = {id: e for id, e in found.items() if e.version == versions[id] and e.state is State.ACTIVE}
    return same.get(payload["entry"]), [same[id] for id, _ in payload["against"] if id in same]


def _decide(up: Upkeep, task: Task, store: Store, new: Entry, old: Sequence[Entry]) -> None:
    ctx = up.ctx
    try:
        asked = prompt("resolve", ctx.prompts)
        rulings = ask(task, "ask", asked, _question(new, old), lambda data: _rulings(data, len(old)))
    except ChatMalformed as error:
        up.drop("resolved", [new.id], error.message)
        return
    name = task.chat.name if task.chat else ""
    for ruling in rulings:
        other = old[ruling.position]
        pairs = _judged(ctx, store, new, other, ruling, name)
        if ruling.decision == "add":
            if pairs:
                up.commit(store, "kept", (), pairs=pairs)
            continue
        now, rest = _present(store, {**task.job.payload, "against": [[other.id, other.version]]})
        if now is None or not rest:
            up.drop("resolved", [new.id, other.id], "one of them has changed while the model was asked")
            continue
        saves = _saves(ctx, now, other, ruling, f"{ruling.reason} (decided by {name})")
        up.commit(store, _COUNTS[ruling.decision], saves, pairs=pairs, main=saves[-1].entry.id)


_RELATIONS = {"add": Relation.BOTH, "noop": Relation.SAME}


def _judged(
    ctx: CallContext, store: Store, new: Entry, old: Entry, ruling: ModelRuling, model: str
) -> tuple[SaveRivalry, ...]:
    """Return the pair of two entries that the model lets stand, if the rules had found one."""
    relation, by = _RELATIONS.get(ruling.decision), f"model {model}"
    if relation is None:
        return ()
    found = [pair for pair in store.rivals([new.id]) if pair.beside(new.id) == old.id]
    return tuple(SaveRivalry(replace(p, relation=relation, reason=ruling.reason, decided_by=by)) for p in found)


_COUNTS = {"update": "updated", "delete": "deleted", "noop": "merged"}


def _question(new: Entry, old: Sequence[Entry]) -> str:
    olds = [{"number": n, "said": f"{e.confirmed_at:%Y-%m-%d}", "text": e.content} for n, e in enumerate(old, 1)]
    given = {"new": {"said": f"{new.confirmed_at:%Y-%m-%d}", "text": new.content}, "older": olds}
    return json.dumps(given, ensure_ascii=False)


def _rulings(data: Mapping[str, Any], size: int) -> list[ModelRuling]:
    listed = data.get("decisions")
    if not isinstance(listed, list):
        raise InvalidInput('"decisions" must be a list')
    out: dict[int, ModelRuling] = {}
    for item in listed:
        number = item.get("number") if isinstance(item, Mapping) else None
        decision = item.get("decision") if isinstance(item, Mapping) else None
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= size:
            raise InvalidInput(f'each decision needs a "number" from 1 to {size}')
        if decision not in DECISIONS:
            raise InvalidInput(f'each "decision" must be one of: {", ".join(DECISIONS)}')
        reason = item.get("reason")
        told = " ".join(reason.split())[:200] if isinstance(reason, str) and reason.strip() else "no reason was given"
        out[number] = ModelRuling(number - 1, str(decision), told)
    return list(out.values())


def _saves(ctx: CallContext, new: Entry, old: Entry, ruling: ModelRuling, cause: str) -> list[SaveEntry]:
    verdict = Verdict("resolve", ruling.decision, cause, {"targets": [old.id]})
    if ruling.decision == "noop":
        # A less trusted copy does not replace a more trusted restatement.
        kept, copy = (new, old) if new.trust > old.trust else (old, new)
        return [_gives_way(ctx, copy, kept, cause), _confirmed(ctx, kept, copy, cause)]
    if new.trust < old.trust:
        return [_held(ctx, new, cause, verdict)]
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now)
    return [replace(retire(old, new, setting, cause, str(ctx.actor)), ledger=(verdict,))]


def _held(ctx: CallContext, new: Entry, cause: str, verdict: Verdict) -> SaveEntry:
    why = f"{cause}, but comes from a less trusted origin: held for a person to decide"
    gate = GateVerdict(Gate.HOLD, 1.0, why)
    moved = new.moved(State.HELD, at=ctx.now, cause=why, actor=str(ctx.actor), gate=gate, version=new.version + 1)
    return SaveEntry(moved, new.version, "entry.held", why, (verdict,))


def _gives_way(ctx: CallContext, new: Entry, old: Entry, cause: str) -> SaveEntry:
    moved = new.moved(State.SUPERSEDED, at=ctx.now, cause=cause, actor=str(ctx.actor), superseded_by=old.id)
    return SaveEntry(replace(moved, version=new.version + 1), new.version, "entry.superseded", cause)


def _confirmed(ctx: CallContext, old: Entry, new: Entry, cause: str) -> SaveEntry:
    count, at = old.merged_count + new.merged_count, max(old.confirmed_at, new.confirmed_at)
    said = replace(old, merged_count=count, confirmed_at=at, updated_at=ctx.now, version=old.version + 1)
    return SaveEntry(said, old.version, "entry.merged", cause)
