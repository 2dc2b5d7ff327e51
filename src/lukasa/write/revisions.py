"""Decide what a thing is from its revisions: the same for everybody who has the same ones, in whatever order they came.

A thing has texts or fields. A text that two machines changed apart forks into two paths, and both are kept: the path
that began first keeps the place of the thing, the other one gets a place that follows from its first revision. Fields
are merged one by one. What was erased stays erased: neither its words nor what was made from them come back.

    text      {"name", "text", "rest", "fields"}: the whole text; a text of None says that it was taken away
    fields    {"name", "set"}: the fields that changed, with their new values
    erasure   {"erased", "kept", "whole"}: the digests of the revisions that lose their words
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lukasa.model.events import canonical_json
from lukasa.model.sync import Revision
from lukasa.model.values import State

GONE = "gone"  # a field: true says that the thing was taken away
_MARK = 8  # characters of a digest that tell a second place from the first
# A state that somebody decided comes before one that follows from age; a statement in force comes last.
_RANK = (
    State.FORGOTTEN,
    State.INVALIDATED,
    State.PRUNED,
    State.SUPERSEDED,
    State.ARCHIVED,
    State.HELD,
    State.STALE,
    State.ACTIVE,
)
_STATUS = ("archived", "idle", "active")
_LEAST, _MOST = (
    frozenset({"trust", "workspace"}),
    frozenset({"merged_count", "confirmed_at", "updated_at", "kept", "observed"}),
)


class Path(NamedTuple):
    """One text of a thing. `mark` is empty for the one that keeps the thing's place.

    `body` is None if nothing is to be seen: the text was taken away or erased. `first` is the revision with which the
    path began, `heads` are those that the next change is made from, and `members` all that belong to it.
    """

    mark: str
    body: dict[str, Any] | None
    first: Revision
    heads: tuple[str, ...]
    members: tuple[str, ...]


def is_erasure(revision: Revision) -> bool:
    """Whether a revision says what was erased, and nothing else."""
    return revision.body is not None and "erased" in revision.body


def ordered(revisions: Iterable[Revision]) -> list[Revision]:
    """Return the revisions of a thing, each behind its parents, and otherwise the earliest first."""
    known = {one.digest: one for one in revisions}
    waiting = {digest: {p for p in one.parents if p in known} for digest, one in known.items()}
    children = defaultdict[str, list[str]](list)
    for digest, parents in waiting.items():
        for parent in parents:
            children[parent].append(digest)
    ready = sorted((known[digest] for digest, parents in waiting.items() if not parents), key=_when)
    done: list[Revision] = []
    while ready:
        one = ready.pop(0)
        done.append(one)
        for digest in children[one.digest]:
            waiting[digest].discard(one.digest)
            if not waiting[digest]:
                ready.append(known[digest])
        ready.sort(key=_when)
    return done


def _when(revision: Revision) -> tuple[Any, str]:
    return revision.at, revision.digest


def erased(revisions: Iterable[Revision]) -> set[str]:
    """Return the digests of revisions that have lost their words, also of ones that have not come yet.

    A change that was made from an erased text is erased with it, unless the machine that erased knew it and kept it,
    or it was made after the erasure. What an erasure calls whole keeps nothing that was not made after one.
    """
    every = ordered(revisions)
    said = [one.body for one in every if is_erasure(one) and one.body is not None]
    if not said:
        return set()
    gone = {digest for body in said for digest in body["erased"]}
    kept = {digest for body in said for digest in body["kept"]}
    whole, after = any(body["whole"] for body in said), set[str]()
    for one in every:
        if is_erasure(one) or any(parent in after for parent in one.parents):
            after.add(one.digest)
        if is_erasure(one) or one.digest in gone:
            continue
        follows = any(parent in gone for parent in one.parents) and one.digest not in kept
        if follows or (whole and one.digest not in after):
            gone.add(one.digest)
    return gone


def _erased_text(one: Revision, gone: set[str]) -> bool:
    return one.digest in gone or one.body is None


# Texts


class _Node:
    """Revisions that say the same at one place of the graph."""

    def __init__(self, parent: _Node | None, text: str | None) -> None:
        self.parent, self.text = parent, text
        self.revisions: list[Revision] = []
        self.erasures: list[str] = []
        self.children: list[_Node] = []
        self.renewed = False  # made after an erasure
        if parent is not None:
            parent.children.append(self)

    @property
    def began(self) -> tuple[Any, str]:
        return min(map(_when, self.revisions))

    @property
    def is_gone(self) -> bool:
        return self.text == _NOTHING


_NOTHING = canonical_json(None)


def paths(revisions: Iterable[Revision]) -> list[Path]:
    """Return the texts of a thing: first the one that keeps its place, then the others, the oldest first."""
    every = ordered(revisions)
    gone = erased(every)
    root, at = _Node(None, None), dict[str, _Node]()
    for one in every:
        before = _before(one, at) or root
        if is_erasure(one):
            before.erasures.append(one.digest)
        at[one.digest] = before if is_erasure(one) else _node(one, before, gone, at)
    starts = [root]
    found: list[Path] = []
    while starts:
        found.append(_path(starts.pop(0), starts, gone, first=not found))
    shown, seen = list[Path](), set[str]()
    for path in found:
        said = None if path.body is None else canonical_json(path.body["text"])
        if path.members and (not path.mark or (said is not None and said not in seen)):
            shown.append(path)
        if said is not None:
            seen.add(said)
    return shown


def _before(one: Revision, at: Mapping[str, _Node]) -> _Node | None:
    """Return the node that a revision was made from; of several, the one that began first."""
    found = [at[parent] for parent in one.parents if parent in at]
    return min(found, key=lambda node: node.began if node.revisions else (one.at, "")) if found else None


def _node(one: Revision, before: _Node, gone: set[str], at: Mapping[str, _Node]) -> _Node:
    if _erased_text(one, gone):
        node = _Node(before, None)
    else:
        said = canonical_json((one.body or {}).get("text"))
        same = [node for node in (before, *before.children) if node.text == said]
        node = same[0] if same else _Node(before, said)
    node.renewed = node.renewed or any(parent in at and parent not in gone for parent in _erasures_of(one, at))
    node.revisions.append(one)
    return node


def _erasures_of(one: Revision, at: Mapping[str, _Node]) -> list[str]:
    """Return the parents of a revision that are erasures: they have a node that does not hold them."""
    return [p for p in one.parents if p in at and all(p != other.digest for other in at[p].revisions)]


def _path(start: _Node, starts: list[_Node], gone: set[str], *, first: bool) -> Path:
    """Follow a text from its beginning to its end, and note where others begin."""
    node, members = start, list[Revision](start.revisions)
    while node.children:
        chosen, *others = sorted(node.children, key=lambda one: (one.is_gone, not one.renewed, one.began))
        starts.extend(others)
        node = chosen
        members += node.revisions
    begun = start if start.revisions else next(iter(_chain(start, node)), node)
    last = _latest(node.revisions, gone)
    body = last.body if last is not None and not node.is_gone else None
    earliest = min(begun.revisions, key=_when) if begun.revisions else None
    if earliest is None:  # erasures of what has not come yet
        return Path("", None, _NOBODY, (), ())
    alive = [one for one in begun.revisions if not _erased_text(one, gone)]
    base = min(alive, key=_when) if alive else earliest
    heads = tuple(sorted(node.erasures)) if last is None and node.erasures else _ends(node.revisions)
    mark = "" if first else earliest.digest
    return Path(mark, body, _base(members, base, gone), heads, tuple(one.digest for one in members))


def _ends(revisions: Sequence[Revision]) -> tuple[str, ...]:
    parents = {parent for one in revisions for parent in one.parents}
    return tuple(sorted(one.digest for one in revisions if one.digest not in parents))


def _base(members: Sequence[Revision], base: Revision, gone: set[str]) -> Revision:
    """Return the revision that a path began with, or the first of it that still has words."""
    if not _erased_text(base, gone):
        return base
    return next((one for one in members if not _erased_text(one, gone)), base)


def _chain(start: _Node, end: _Node) -> list[_Node]:
    found: list[_Node] = []
    node: _Node | None = end
    while node is not None and node is not start:
        found.insert(0, node)
        node = node.parent
    return found


def _latest(revisions: Sequence[Revision], gone: set[str]) -> Revision | None:
    """Return the last of the revisions that say the same: what they say beside the text is that of the last one."""
    alive = [one for one in revisions if not _erased_text(one, gone)]
    parents = {parent for one in alive for parent in one.parents}
    return max((one for one in alive if one.digest not in parents), key=_when, default=None)


_NOBODY = Revision("", "", "", (), None, None, "", "", "")  # type: ignore[arg-type]


def mark_of(digest: str) -> str:
    """Return the part of a digest that is shown in the name of a second text."""
    return digest[:_MARK]


# Fields


def merged(revisions: Iterable[Revision], base: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the fields of a thing, from those that it began with and from every change.

    A change counts until another one that was made with knowledge of it sets the same field. If several do, apart from
    one another, `_chosen` has the rule of each field.
    """
    every = ordered(revisions)
    gone, bits = erased(every), {one.digest: 1 << n for n, one in enumerate(every)}
    above = dict[str, int]()
    setters = defaultdict[str, list[Revision]](list)
    for one in every:
        known = 0
        for parent in one.parents:
            known |= above.get(parent, 0) | bits.get(parent, 0)
        above[one.digest] = known
        if not _erased_text(one, gone) and not is_erasure(one):
            for name in (one.body or {})["set"]:
                setters[name].append(one)
    fields = dict(base or {})
    for name, given in setters.items():
        over = 0
        for one in given:
            over |= above[one.digest]
        last = [one for one in given if not bits[one.digest] & over]
        fields[name] = _chosen(name, [(one, (one.body or {})["set"][name]) for one in last])
    return fields


def _chosen(name: str, given: Sequence[tuple[Revision, Any]]) -> Any:
    """Choose between values that were set apart: the least trust, the highest count, the state that takes most away.

    A tag that anybody set stays, and so does what anybody took away. Otherwise the last value counts.
    """
    values = [value for _, value in given]
    if len(values) == 1 or all(value == values[0] for value in values):
        return values[0]
    kind = name.partition("/")[0]
    if kind in _LEAST:
        return min(values)
    if kind in _MOST:
        return max(values)
    if kind in ("tags", "removed", GONE):
        return any(values)
    if kind == "status":  # a conversation that was ended anywhere is ended
        return min(given, key=lambda pair: (_STATUS.index(pair[1][0]), _later(pair[0])))[1]
    if kind == "state":
        return min(given, key=lambda pair: (_RANK.index(State(pair[1][0])), _later(pair[0])))[1]
    if kind == "judged":  # of two statements: what somebody decided comes before what rules found
        return min(given, key=lambda pair: (not pair[1][2], _later(pair[0])))[1]
    return max(given, key=lambda pair: _when(pair[0]))[1]


def _later(revision: Revision) -> tuple[float, str]:
    return -revision.at.timestamp(), revision.digest


def heads(revisions: Iterable[Revision]) -> tuple[str, ...]:
    """Return the revisions that the next change is made from: the ends of what was not erased."""
    every = list(revisions)
    gone = erased(every)
    return _ends([one for one in every if one.digest not in gone])


def changed(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that differ, with their new values; one that is not there any more is None, or a tag False."""
    found = {name: value for name, value in now.items() if name not in before or before[name] != value}
    gone = {
        name: False if name.startswith("tags/") else None
        for name, value in before.items()
        if name not in now and value not in (None, False)
    }
    return found | gone
