"""An entry as a row and back. Every backend with a database stores these columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from lukasa.model.candidate import Candidate, chars, is_said
from lukasa.model.entry import DAMAGED, Category, Entry, GateVerdict, Scope, SourceLink, Transition
from lukasa.model.errors import UNREADABLE, Damaged
from lukasa.model.events import canonical_json
from lukasa.model.statements import role, subject, word_key
from lukasa.model.text import content_hash
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.model.transcript import Quote
from lukasa.model.values import Curator, Gate, Kind, Lifetime, Origin, State, Trust
from lukasa.storage.port import index_terms, twin_key

FILED, EXEMPT, SAID, RESTS = (
    1,
    2,
    4,
    8,
)  # the bits of a row's marks; RESTS: it has links or sources, in rows of their own
# The columns that `entry_of` reads, in this order: tier and anchor are of the scope, all others of the entry itself. A
# version of an entry is kept as a JSON list of the same.
COLUMNS = tuple(
    """
    id tier anchor owner state kind category source curator lifetime conversation importance created_at updated_at
    confirmed_at valid_at invalid_at superseded_by version tags content rest
    """.split()
)
_CONTENT = COLUMNS.index("content")


@lru_cache(maxsize=4096)
def anchor_text(scope: Scope) -> str:
    return canonical_json(scope.anchor)


@lru_cache(maxsize=4096)
def scope_of(tier: str, anchor: str) -> Scope:
    return Scope(tier, tuple((key, value) for key, value in json.loads(anchor)))


def vector_checksum(text_hash: str, vector: bytes) -> str:
    """Binds a vector to the text it was computed from, so that neither can be swapped unseen."""
    return hashlib.sha256(text_hash.encode("ascii") + vector).hexdigest()


def entry_columns(entry: Entry) -> dict[str, Any]:
    """The columns that follow from the entry alone."""
    terms, created = index_terms(entry), micros(entry.created_at)
    return {
        "id": entry.id,
        "owner": entry.owner,
        "state": str(entry.state),
        "kind": str(entry.kind),
        "category": entry.category.name if entry.category else None,
        "source": entry.source,
        "curator": str(entry.curator),
        "lifetime": str(entry.lifetime),
        "conversation": entry.conversation,
        "importance": entry.importance,
        "created_at": created,
        "updated_at": created if entry.updated_at is entry.created_at else micros(entry.updated_at),
        "confirmed_at": created if entry.confirmed_at is entry.created_at else micros(entry.confirmed_at),
        "valid_at": created if entry.valid_at is entry.created_at else micros_or_none(entry.valid_at),
        "invalid_at": micros_or_none(entry.invalid_at),
        "superseded_by": entry.superseded_by,
        "version": entry.version,
        "chars": chars(entry.content),
        "marks": _marks(entry),
        "term_count": len(terms),
        "tags": json.dumps(entry.tags) if entry.tags else "[]",
        "terms": " ".join(terms),
        "content_hash": content_hash(entry.content),
        "content_key": twin_key(entry),
        "subject": word_key(subject(entry.content)) if entry.path is None else None,
        "role": word_key(role(entry.content)) if entry.path is None else None,
        "content": entry.content,
        "rest": canonical_json(_rest(entry)),
    }


def _marks(entry: Entry) -> int:
    rests = bool(entry.links or entry.derived_from)
    return FILED * (entry.path is not None) + EXEMPT * entry.exempt + SAID * is_said(entry) + RESTS * rests


def _rest(entry: Entry) -> dict[str, Any]:
    """The fields that no filter asks for, as one JSON object; fields with their default value are left out.

    Links and sources are in rows of their own: a read adds them.
    """
    rest: dict[str, Any] = {
        "origin": [entry.origin.principal, entry.origin.surface, entry.origin.transport, int(entry.origin.trust)],
        "trust": int(entry.trust),
        "merged_count": entry.merged_count,
    }
    if entry.category is not None:
        rest["category"] = [entry.category.confidence, entry.category.taxonomy]
    if entry.gate is not None:
        rest["gate"] = [str(entry.gate.verdict), entry.gate.confidence, entry.gate.reason]
    if entry.transition is not None:
        rest["transition"] = [micros(entry.transition.at), entry.transition.cause, entry.transition.actor]
    if entry.metadata:
        rest["metadata"] = entry.metadata
    if entry.evidence:
        rest["evidence"] = [[q.transcript, q.message, q.start, q.end] for q in entry.evidence]
    if entry.path is not None:
        rest["path"] = entry.path
    if entry.meta:
        rest["meta"] = True
    return rest


# Calling an enum looks its value up the slow way, and a read decodes hundreds of rows.
KINDS = {str(kind): kind for kind in Kind}
_LIFETIMES = {str(lifetime): lifetime for lifetime in Lifetime}
_CURATORS = {str(curator): curator for curator in Curator}
STATES = {str(state): state for state in State}
TRUSTS = {int(trust): trust for trust in Trust}


def entry_of(row: tuple[Any, ...]) -> Entry:
    """An entry from `COLUMNS`, in their order; what comes behind them is left alone.

    Its fields are given by position, since so many names take as long as all the rest; most of its times are one.
    """
    (id, tier, anchor, owner, state, kind, category, source, curator, lifetime, conversation) = row[:11]
    (importance, created_at, updated_at, confirmed_at, valid_at, invalid_at) = row[11:17]
    (superseded_by, version, tags, content, rest_text) = row[17:22]
    rest = json.loads(rest_text)
    created = moment(created_at)
    return Entry(
        id,
        scope_of(tier, anchor),
        content,
        KINDS[kind],
        _LIFETIMES[lifetime],
        _CURATORS[curator],
        source,
        importance,
        _origin(*rest["origin"]),
        TRUSTS[rest["trust"]],
        created,
        created if updated_at == created_at else moment(updated_at),
        created if confirmed_at == created_at else moment(confirmed_at),
        owner,
        () if tags == "[]" else tuple(json.loads(tags)),
        conversation,
        None if category is None else Category(category, *rest["category"]),
        _gate_of(rest.get("gate")),
        rest["merged_count"],
        created if valid_at == created_at else moment_or_none(valid_at),
        moment_or_none(invalid_at),
        STATES[state],
        _transition_of(rest.get("transition")),
        superseded_by,
        tuple(rest.get("derived_from", ())),
        tuple([SourceLink(*link) for link in rest["links"]]) if "links" in rest else (),
        rest.get("metadata", {}),
        tuple([Quote(*quote) for quote in rest["evidence"]]) if "evidence" in rest else (),
        rest.get("path"),
        rest.get("meta", False),
        version,
    )


def checked_entry(row: tuple[Any, ...]) -> Entry:
    """An entry from `COLUMNS`, of which the text is bytes, and from the hash of its text behind them.

    If the text is not the one that was written, or a column cannot be read, the entry is marked as damaged.
    """
    content, end = row[_CONTENT], len(COLUMNS)
    try:
        sound = hashlib.sha256(content).hexdigest() == row[end]
        return entry_of((*row[:_CONTENT], content.decode() if sound else DAMAGED, *row[_CONTENT + 1 : end]))
    except UNREADABLE:
        return _unreadable(row)


def _unreadable(row: tuple[Any, ...]) -> Entry:
    """What can be said of an entry whose row cannot be read: where it is, and that it is damaged."""
    id, tier, anchor, owner, state = row[:5]
    try:
        scope = scope_of(tier, anchor)
    except UNREADABLE:
        scope = Scope(str(tier), ())
    never, nobody = moment(0), _origin("", "", "", int(Trust.UNTRUSTED))
    kinds = Kind.EPISODIC, Lifetime.LONG_TERM, Curator.AGENT
    made = Entry(str(id), scope, DAMAGED, *kinds, "", 0.0, nobody, Trust.UNTRUSTED, never, never, never, str(owner))
    return replace(made, state=STATES.get(state, State.ACTIVE))


@lru_cache(maxsize=1024)
def _origin(principal: str, surface: str, transport: str, trust: int) -> Origin:
    return Origin(principal, surface, transport, Trust(trust))


@lru_cache(maxsize=1024)
def _gate(verdict: str, confidence: float, reason: str) -> GateVerdict:
    return GateVerdict(Gate(verdict), confidence, reason)


def _gate_of(gate: list[Any] | None) -> GateVerdict | None:
    return None if gate is None else _gate(*gate)


def _transition_of(transition: list[Any] | None) -> Transition | None:
    return None if transition is None else Transition(moment(transition[0]), transition[1], transition[2])


def candidates_of(rows: Sequence[tuple[Any, ...]], scopes: Mapping[int, Scope]) -> list[Candidate]:
    """Candidates of rows that begin with the columns of one; `scopes` are by the number of a partition."""
    make, made = tuple.__new__, []  # as Candidate() would, in less time
    for row in rows:
        (id, partition, kind, state, source, tags, category, conversation, importance) = row[:9]
        (created, confirmed, valid, invalid, chars, marks, version, trust) = row[9:17]
        try:
            labels = () if tags == "[]" else tuple(json.loads(tags))
            kinds = KINDS[kind], STATES[state], source, labels, category, conversation, importance
            trusted = TRUSTS[trust]
        except UNREADABLE:
            raise Damaged(f"entry {id}") from None
        marked = marks & FILED > 0, marks & EXEMPT > 0, marks & SAID > 0
        times = created, confirmed, valid, invalid, chars
        made.append(make(Candidate, (id, scopes[partition], *kinds, *times, *marked, version, trusted)))
    return made


_snapshot_columns = itemgetter(*COLUMNS[3:])


def snapshot(entry: Entry, columns: dict[str, Any]) -> str:
    """A version of an entry: the same columns as its row, as one JSON list, with its links and sources of that time."""
    *others, rest = _snapshot_columns(columns)
    if entry.links or entry.derived_from:
        links = [[link.source, link.version, link.locator, link.checked] for link in entry.links]
        rest = canonical_json(_rest(entry) | {"links": links, "derived_from": entry.derived_from})
    return canonical_json([entry.id, entry.scope.tier, anchor_text(entry.scope), *others, rest])


def entry_of_snapshot(text: str) -> Entry:
    return entry_of(tuple(json.loads(text)))
