"""Edits of every kind of thing, as a test draws them: verbs of a machine, or records that a verb would write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from msgspec.structs import replace

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.entry import ClosedScope, Scope
from lukasa.model.errors import LukasaError
from lukasa.model.ids import new_id
from lukasa.model.item import ItemAddress
from lukasa.model.transcript import Transcript, Utterance
from lukasa.service.entries import store_items
from lukasa.service.entries.store_items import PutItem
from lukasa.service.sync import reading
from lukasa.service.workspace import Workspace
from lukasa.storage.operations import CloseScope, KeepUtterances, SaveAmendment, SaveTranscript, SaveWorkspace
from tests.helpers.replicas import Machine

_WORDS = "quay boat mill lamp road tide rope bell gate loft well crane barge ferry mast oar".split()


def text(number: int) -> str:
    """Return one of a few sentences; two machines may well write the same one."""
    a, b, c = (_WORDS[number * k % len(_WORDS)] for k in (1, 3, 7))
    return f"The {a} near the {b} has a {c} of number {number % 23}"


def _entries(work: Workspace) -> list[str]:
    stores = (work.ctx.local, work.ctx.account)
    return sorted(entry.id for store in stores for entry in reading.entries(store))


def _pick(found: list[str], n: int) -> str:
    if not found:
        raise LukasaError("nothing to change")
    return found[n % len(found)]


def _conversation(work: Workspace, n: int) -> str:
    return _pick(sorted(one.id for one in work.conversations(archived=True)), n)


def put(work: Workspace, n: int) -> None:
    work.put(("workspace", "account")[n % 5 == 4], text(n))


def put_sources(work: Workspace, n: int) -> None:
    work.put("workspace", text(n + 1), derived_from=[_pick(_entries(work), n)], cites=[f"file:src/{n % 4}.py"])


def reword(work: Workspace, n: int) -> None:
    work.update(_pick(_entries(work), n), content=text(n * 5 + 1))


def weigh(work: Workspace, n: int) -> None:
    work.update(_pick(_entries(work), n), importance=(n % 10) / 10, tags=(_WORDS[n % 5], _WORDS[n % 3]))


def describe(work: Workspace, n: int) -> None:
    work.update(_pick(_entries(work), n), metadata={_WORDS[n % 4]: n})


def forget(work: Workspace, n: int) -> None:
    work.forget(_pick(_entries(work), n))


def restore(work: Workspace, n: int) -> None:
    work.restore(_pick(_entries(work), n))


def again(work: Workspace, n: int) -> None:
    id = _pick(_entries(work), n)
    found = {**work.ctx.local.entries([id]), **work.ctx.account.entries([id])}[id]
    work.put(found.scope.tier, found.content)


def page(work: Workspace, n: int) -> None:
    work.edit_named(("VOICE", "SOUL")[n % 2], f"Write plainly. {text(n)}.")


def note(work: Workspace, n: int) -> None:
    work.write_note(_conversation(work, n), _WORDS[n % 3], {"said": text(n)})


def clear(work: Workspace, n: int) -> None:
    work.clear_notes(_conversation(work, n), _WORDS[n % 3])


def document(work: Workspace, n: int) -> None:
    work.save_document(f"guide-{n % 3}", f"{text(n)}. {text(n + 2)}.", title=_WORDS[n % 4])


def link(work: Workspace, n: int) -> None:
    heads = work.documents()
    head = heads[n % len(heads)]
    work.put("workspace", text(n + 3), links=[head.id])


def remove(work: Workspace, n: int) -> None:
    work.remove_document(f"guide-{n % 3}")


def item(work: Workspace, n: int) -> None:
    place = ItemAddress(("graph", _WORDS[n % 2]), _WORDS[n % 3])
    store_items.write(work.ctx, [PutItem(place, {"said": text(n)})], None)


def drop(work: Workspace, n: int) -> None:
    store_items.write(work.ctx, [PutItem(ItemAddress(("graph", _WORDS[n % 2]), _WORDS[n % 3]), None)], None)


def channel(work: Workspace, n: int) -> None:
    work.create_channel(f"about-{_WORDS[n % 3]}", text(n))


def start(work: Workspace, n: int) -> None:
    work.start()


def archive(work: Workspace, n: int) -> None:
    work.archive(_conversation(work, n))


def idle(work: Workspace, n: int) -> None:
    work.idle(_conversation(work, n))


def act(work: Workspace, n: int) -> None:
    work.link_action(f"action-{n % 4}", [_pick(_entries(work), n)], "it was sent")


def judge(work: Workspace, n: int) -> None:
    ids = _entries(work)
    pairs = work.ctx.local.rivals(ids)
    one = pairs[n % len(pairs)] if pairs else None
    if one is not None:
        work.settle(one.entry, one.other, ("both", "old", "new")[n % 3])


def session(work: Workspace, n: int) -> None:
    """A session may be taken in on several machines: its key is the same everywhere."""
    now, key = work.ctx.now, f"session-{n % 4}"
    said = Utterance(f"m{n}", "user", text(n), 0, now)
    made = Transcript(new_id(), key, "lines", key, now, now, kept=1)
    work.ctx.apply(work.ctx.local, SaveTranscript(made, 0), KeepUtterances(made.id, (said,)))


def propose(work: Workspace, n: int) -> None:
    now = work.ctx.now
    made = Amendment(new_id(), "preferences", text(n), 0.5, (), now, now)
    work.ctx.apply(work.ctx.local, SaveAmendment(made, 0))


def decide(work: Workspace, n: int) -> None:
    found = work.ctx.local.amendments()
    one = found[n % len(found)]
    state = (AmendmentState.PROMOTED, AmendmentState.REJECTED)[n % 2]
    moved = replace(one, state=state, decided_by="ada", updated_at=work.ctx.now)
    work.ctx.apply(work.ctx.local, SaveAmendment(moved, one.version))


def close(work: Workspace, n: int) -> None:
    scope = Scope("workspace", (("workspace", work.ctx.info.id), ("sprint", str(n % 3))))
    work.ctx.apply(work.ctx.local, CloseScope(ClosedScope(scope, "sprint ended", work.ctx.now)))


def rename(work: Workspace, n: int) -> None:
    found = next(one for one in work.ctx.account.workspaces() if one.id == work.ctx.info.id)
    named = replace(found, spec_toml=f"{found.spec_toml.rstrip()}\n# {_WORDS[n % 4]}\n")
    work.ctx.apply(work.ctx.account, SaveWorkspace(named, found.ready))


EDITS: tuple[Callable[[Workspace, int], None], ...] = (
    *(put, put, put, put_sources, reword, reword, reword, weigh, weigh, describe, forget, restore, again, page, note),
    *(note, clear, document, link, remove, item, drop, channel, start, archive, idle, act, judge, session, propose),
    *(decide, close, rename),
)


def erase(work: Workspace, n: int) -> None:
    id = _pick(_entries(work), n)
    work.erase(entry=id, confirm=work.erase_plan(entry=id).digest)


def erase_word(work: Workspace, n: int) -> None:
    """Erase all that names one of the words, as if it were a person: from texts of every kind."""
    name = _WORDS[n % len(_WORDS)]
    work.erase(person=name, aliases=(), confirm=work.erase_plan(person=name, aliases=()).digest)


def edit(machine: Machine, verb: Callable[[Workspace, int], None], n: int) -> bool:
    """Do an edit on a machine, some time later; return whether it was acknowledged."""
    machine.clock.time += timedelta(seconds=1)
    with suppress(LukasaError, IndexError, ZeroDivisionError):
        verb(machine.workspace(), n)
        return True
    return False
