"""Neighbours inside a batch: what the earlier members will have changed when a later one is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from lukasa.index.matches import Neighbour
from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.model.statements import role, subject
from lukasa.model.text import said_key
from lukasa.model.values import State
from lukasa.ports import Vector
from lukasa.storage.operations import Embedding, SaveEntry
from lukasa.write.plan import Draft, Plan

_ROUNDED = 1e-4  # the most by which a product of many rows may differ from that of two
_ALONE = 262_144  # multiplications of one product; more would use several cores, which costs more than it gains


class Batch:
    """The members so far, found as a store finds entries: by text, by vector, by subject and by role.

    With `whole`, every member is a neighbour of every later one.
    """

    def __init__(
        self, drafts: Sequence[Draft], embeddings: Sequence[Embedding | None], floor: float, *, whole: bool
    ) -> None:
        self._drafts = drafts
        self._whole = whole
        self._changed: dict[str, Entry] = {}
        self._members: dict[int, str] = {}  # ids of added entries, by the position of their draft
        self._by_handle: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        self._handles = [_handles(draft) for draft in drafts]
        self._cosines = _near_pairs(embeddings, floor)

    def add(self, position: int, planned: Plan) -> None:
        for operation in planned.operations:
            if isinstance(operation, SaveEntry):
                self._changed[operation.entry.id] = operation.entry
                if operation.expect == 0:
                    self._members[position] = operation.entry.id
                    for handle in self._handles[position]:
                        self._by_handle[handle].append(position)

    def view(self, position: int, found: Sequence[Neighbour]) -> tuple[Neighbour, ...]:
        """The neighbours of a draft: from the store, with the changes of the batch, and from the batch itself."""
        members = list(self._mine(position))
        if not self._changed or not (found or members):
            return tuple(found)
        known = {one.entry.id for one in found}
        current = [Neighbour(self._changed.get(one.entry.id, one.entry), one.cosine) for one in found]
        mine = [Neighbour(self._changed[id], cosine) for id, cosine in members if id not in known]
        near = [n for n in (*current, *mine) if n.entry.state in (State.ACTIVE, State.HELD)]
        return tuple(self._in_order(self._drafts[position], near) if mine else near)

    def _mine(self, position: int) -> Iterator[tuple[str, float | None]]:
        cosines = self._cosines.get(position, {})
        for other in self._alike(position, cosines):
            if other in self._members and self._drafts[other].proposal.owner == self._drafts[position].proposal.owner:
                yield self._members[other], cosines.get(other)

    def _alike(self, position: int, cosines: Iterable[int]) -> Iterable[int]:
        draft = self._drafts[position]
        if draft.proposal.path is not None:
            return ()
        if self._whole:
            return range(position)
        by_words = [other for handle in self._handles[position] for other in self._by_handle.get(handle, ())]
        return dict.fromkeys([*cosines, *by_words])

    def _in_order(self, draft: Draft, near: Sequence[Neighbour]) -> list[Neighbour]:
        """The order of a store's answer: the same text first, then by cosine, then the rest."""
        key = said_key(draft.content, draft.proposal.speaker)

        def order(n: Neighbour) -> tuple[bool, float]:
            return said_key(n.entry.content, n.entry.speaker) != key, 2.0 if n.cosine is None else -n.cosine

        return sorted(near, key=order)


def _handles(draft: Draft) -> list[tuple[str, str, str]]:
    """The keys by which a draft is found: its text, its subject, its role."""
    owner, text = draft.proposal.owner, draft.content
    if draft.proposal.path is not None or draft.resolved:
        return []
    key = said_key(text, draft.proposal.speaker)
    handles = [("text", owner, key), ("subject", owner, subject(text)), ("role", owner, role(text))]
    return [handle for handle in handles if handle[2]]


def _near_pairs(embeddings: Sequence[Embedding | None], floor: float) -> dict[int, dict[int, float]]:
    """By position, the earlier positions whose cosine reaches the floor."""
    given = [(position, embedding) for position, embedding in enumerate(embeddings) if embedding is not None]
    if len(given) < 2:
        return {}
    matrix = np.array([embedding.vector for _, embedding in given], dtype=np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    norms[norms == 0] = 1.0
    matrix /= norms
    pairs: dict[int, dict[int, float]] = {}
    for later, earlier in _candidates(matrix, floor - _ROUNDED):
        cosine = float(np.vecdot(matrix[earlier], matrix[later]))
        if cosine >= floor:
            pairs.setdefault(given[later][0], {})[given[earlier][0]] = min(1.0, cosine)
    return pairs


def _candidates(matrix: Vector, floor: float) -> Iterator[tuple[int, int]]:
    """Pairs of a row and an earlier row whose product reaches the floor, except for rounding."""
    across = np.ascontiguousarray(matrix.T)
    step = max(1, _ALONE // matrix.size)
    for at in range(0, len(matrix), step):
        later, earlier = np.nonzero(matrix[at : at + step] @ across[:, : at + step] >= floor)
        for row, column in zip((later + at).tolist(), earlier.tolist(), strict=True):
            if column < row:
                yield row, column
