"""What the earlier members of a batch will have changed by the time a later one is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from lukasa.index.neighbours import Neighbour
from lukasa.model.arrays import np
from lukasa.model.entry import Entry
from lukasa.model.statements import role, subject
from lukasa.model.text import content_key
from lukasa.model.values import State
from lukasa.ports import Vector
from lukasa.storage.operations import Embedding, SaveEntry
from lukasa.write.plan import Draft, Plan

_ROUNDED = 1e-4  # by how much a product of many at once may differ from that of two
_ALONE = 262_144  # multiplications up to which a product stays on one core: waiting for others costs more than it gains


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
        self._members: dict[int, str] = {}  # ids of what was added, by the place of its draft
        self._places: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        self._handles = [_handles(draft) for draft in drafts]
        self._cosines = _near_pairs(embeddings, floor)

    def add(self, place: int, planned: Plan) -> None:
        for operation in planned.operations:
            if isinstance(operation, SaveEntry):
                self._changed[operation.entry.id] = operation.entry
                if operation.expect == 0:
                    self._members[place] = operation.entry.id
                    for handle in self._handles[place]:
                        self._places[handle].append(place)

    def view(self, place: int, found: Sequence[Neighbour]) -> tuple[Neighbour, ...]:
        """What is near a draft: of the store, as it will be by then, and of the batch."""
        members = list(self._mine(place))
        if not self._changed or not (found or members):
            return tuple(found)
        known = {near.entry.id for near in found}
        current = [Neighbour(self._changed.get(near.entry.id, near.entry), near.cosine) for near in found]
        mine = [Neighbour(self._changed[id], cosine) for id, cosine in members if id not in known]
        near = [n for n in (*current, *mine) if n.entry.state in (State.ACTIVE, State.HELD)]
        return tuple(self._in_order(self._drafts[place], near) if mine else near)

    def _mine(self, place: int) -> Iterator[tuple[str, float | None]]:
        cosines = self._cosines.get(place, {})
        for other in self._alike(place, cosines):
            if other in self._members and self._drafts[other].proposal.owner == self._drafts[place].proposal.owner:
                yield self._members[other], cosines.get(other)

    def _alike(self, place: int, cosines: Iterable[int]) -> Iterable[int]:
        draft = self._drafts[place]
        if draft.proposal.path is not None:
            return ()
        if self._whole:
            return range(place)
        by_words = [other for handle in self._handles[place] for other in self._places.get(handle, ())]
        return dict.fromkeys([*cosines, *by_words])

    def _in_order(self, draft: Draft, near: Sequence[Neighbour]) -> list[Neighbour]:
        """As a store would answer: the same text first, then by cosine, then the rest."""
        key = content_key(draft.content)

        def place(n: Neighbour) -> tuple[bool, float]:
            return content_key(n.entry.content) != key, 2.0 if n.cosine is None else -n.cosine

        return sorted(near, key=place)


def _handles(draft: Draft) -> list[tuple[str, str, str]]:
    """What a draft is found by: its text, its subject, its role."""
    owner, text = draft.proposal.owner, draft.content
    if draft.proposal.path is not None or draft.settled:
        return []
    handles = [("text", owner, content_key(text)), ("subject", owner, subject(text)), ("role", owner, role(text))]
    return [handle for handle in handles if handle[2]]


def _near_pairs(embeddings: Sequence[Embedding | None], floor: float) -> dict[int, dict[int, float]]:
    """By place, the places before it whose vectors reach the floor."""
    given = [(place, embedding) for place, embedding in enumerate(embeddings) if embedding is not None]
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
    """Numbers of rows, each with one before it whose product with it reaches the floor, but for rounding."""
    across = np.ascontiguousarray(matrix.T)
    step = max(1, _ALONE // matrix.size)
    for at in range(0, len(matrix), step):
        later, earlier = np.nonzero(matrix[at : at + step] @ across[:, : at + step] >= floor)
        for row, column in zip((later + at).tolist(), earlier.tolist(), strict=True):
            if column < row:
                yield row, column
