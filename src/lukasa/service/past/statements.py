"""Write the memories of other programs, each once.

An entry of an import has an id that follows from what it is: its format, its words, and the id that its program gave
it. So a second run finds the entry, also if somebody has forgotten or changed it since. A memory that made no entry of
its own, since another one says the same or the spec refuses it, leaves an event with that id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from lukasa.model.errors import InvalidInput, Refused
from lukasa.model.events import EventDraft
from lukasa.model.ids import derived_id
from lukasa.model.past import IMPORTED, PastStatement
from lukasa.model.values import Curator, Kind, Trust
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.entries.put import Memo, Written, put_many
from lukasa.service.instrument import verb
from lukasa.storage.operations import Operation, Record

DONE = "import.item"  # the event of a memory that made no entry of its own
KNOWN, REFUSED = "known", "refused"
BY_PERSON = "user"
BATCH = 100
_ABOUT = 2_000  # characters of what a file says about a memory
_KEPT = ("stored", "replaced", "held")


def ids(ctx: CallContext, tier: str, statements: Sequence[PastStatement]) -> list[str]:
    """Return the id of each memory in the scope of a tier here."""
    scope = ctx.scope(tier)
    where = "\x1f".join((scope.tier, *(f"{name}={value}" for name, value in scope.anchor)))
    return [derived_id(IMPORTED, where, one.identity) for one in statements]


def known(ctx: CallContext, tier: str, statements: Sequence[PastStatement]) -> list[bool]:
    """Return for each memory whether it was imported before; the second of two in one list is known, too."""
    store, named = ctx.store(tier), ids(ctx, tier, statements)
    there = store.entries(dict.fromkeys(named), damaged=True)
    found: list[bool] = []
    seen: set[str] = set()
    for id in named:
        found.append(id in seen or id in there or bool(store.events(subject=id, action=DONE, limit=1)))
        seen.add(id)
    return found


@verb("memory", "import")
def bring(ctx: CallContext, tier: str, statements: Sequence[PastStatement], *, mine: bool = False) -> list[str]:
    """Write the memories that are new, and return the outcome of each: known, refused, or that of a put.

    They count as said when their file says, and as imported: an agent may be told them, and act on none. With `mine`,
    rules that a person wrote are the author's own.
    """
    ctx.require_author("import memories")
    before = known(ctx, tier, statements)
    outcomes = [KNOWN] * len(statements)
    new = [number for number, is_known in enumerate(before) if not is_known]
    named = ids(ctx, tier, statements)
    memos = {number: _memo(ctx, tier, named[number], statements[number], mine) for number in new}
    for outcome, number in zip(_put(ctx, tier, [memos[n] for n in new]), new, strict=True):
        outcomes[number] = outcome
    return outcomes


def bring_all(ctx: CallContext, tier: str, found: Iterable[PastStatement], *, mine: bool = False) -> Counter[str]:
    """Write memories batch by batch, and count the outcomes."""
    outcomes, most, left = Counter[str](), ctx.spec.reference_only.max_chars, iter(found)
    while batch := [part for one in islice(left, BATCH) for part in parts(one, most)]:
        outcomes.update(bring(ctx, tier, batch, mine=mine))
    return outcomes


def _put(ctx: CallContext, tier: str, memos: Sequence[Memo]) -> Iterator[str]:
    """Write memos in one transaction, or one by one if the write path refuses one of them."""
    if not memos:
        return
    try:
        yield from _together(ctx, tier, memos)
    except (Refused, InvalidInput) as refusal:
        if len(memos) > 1:
            for memo in memos:
                yield from _put(ctx, tier, [memo])
            return
        about = {**dict(memos[0].metadata[IMPORTED]), "outcome": REFUSED, "reason": refusal.code}
        ctx.apply(ctx.store(tier), Record(EventDraft(DONE, str(memos[0].id), about)))
        yield REFUSED


def _together(ctx: CallContext, tier: str, memos: Sequence[Memo]) -> list[str]:
    def also(written: Sequence[Written]) -> list[Operation]:
        return [_done(memo, one) for memo, one in zip(memos, written, strict=True) if one.outcome not in _KEPT]

    if ctx.store(tier) is ctx.local:
        return [one.outcome for one in put_many(ctx, tier, memos, also=also)]
    written = put_many(ctx, tier, memos)  # what is committed with a put goes to the workspace's store
    if marks := also(written):
        ctx.apply(ctx.store(tier), *marks)
    return [one.outcome for one in written]


def _done(memo: Memo, written: Written) -> Operation:
    about = {**dict(memo.metadata[IMPORTED]), "outcome": written.outcome}
    return Record(EventDraft(DONE, str(memo.id), about | ({"entry": written.id} if written.entry is not None else {})))


def _memo(ctx: CallContext, tier: str, id: str, said: PastStatement, mine: bool) -> Memo:
    own = mine and said.rule and not said.by
    kind = said.kind if said.kind in ctx.spec.tier(tier).typology else None
    about = {name: str(value)[:_ABOUT] for name, value in said.about.items()}
    return Memo(
        said.text,
        kind=kind if isinstance(kind, Kind) else None,
        importance=0.7 if said.rule else 0.5,
        tags=[one for one in dict.fromkeys(said.tags) if inputs.is_one_line(one)][:20],
        source=said.by or BY_PERSON,
        curator=Curator.IMPORT,
        metadata={IMPORTED: {"from": said.format, "file": said.file, "item": said.item}, **about},
        id=id,
        said_at=said.said_at or ctx.now,
        valid_at=min(said.said_at, ctx.now) if said.said_at is not None else None,
        trust=None if own else Trust.IMPORTED,
    )


def parts(said: PastStatement, most: int) -> list[PastStatement]:
    """Return a memory in pieces that an entry can hold; most are one piece."""
    if len(said.text) <= most:
        return [said]
    pieces: list[str] = [""]
    for paragraph in said.text.split("\n\n"):
        for start in range(0, max(1, len(paragraph)), most):
            piece = paragraph[start : start + most]
            if pieces[-1] and len(pieces[-1]) + len(piece) + 2 > most:
                pieces.append("")
            pieces[-1] = f"{pieces[-1]}\n\n{piece}" if pieces[-1] else piece
    kept = [piece for piece in pieces if piece.strip()]
    return [replace(said, text=text, item=f"{said.item}, part {n}") for n, text in enumerate(kept, 1)]
