"""Lay out the board: every memory a bead, near what it belongs to. Pure, and the same for the same memory.

Beads must not jump from one day to the next. So the topics are found in the oldest entries alone: as many as the last
power of two that is not above their number. Later entries join the topic that they are nearest to, at its rim. Topics
are found anew only when memory has doubled.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lukasa.model.arrays import np
from lukasa.model.text import STOP_WORDS, fold, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.floating[Any]]

WIDE, HIGH = 760.0, 420.0
_MARGIN = 34.0  # around the topics; above them are their labels
_SHARE = 0.34  # of the board that beads cover when memory has doubled
_MOST_APART = 13.0  # the distance of two beads when there are few
_MOST_SEEDS = 4096
_ROUNDS = 12
_HASHED = 512  # dimensions of a text without a vector
_GOLDEN = math.pi * (3 - math.sqrt(5))
_POSSESSIVE = re.compile(r"['’]s\b")
_SPELLED = re.compile(r"[^\W_][\w.+#-]*[^\W_]|[^\W_]")
# Words that say how something is stated, and not what it is about.
_SAYING = frozenset(
    """always never use uses used using prefer prefers must should run runs keep keeps make makes made need needs want
    wants get gets go goes new old one two every before after only also now still than then since until when where which
    who why how what has have had will would can could may might does did done please remember note all any each more
    most less instead without within between because though about into over under again per via set sets lives live
    says said told asks asked like likes first last next day days week weeks time times today
    yesterday tomorrow""".split()
)


class Spot(Struct, frozen=True):
    """A topic on the board: its label, its middle, and the radius that its beads cover."""

    label: str
    x: float
    y: float
    radius: float
    count: int


class Layout(Struct, frozen=True):
    """The topics, the most beads first, and for each text its topic and its place."""

    spots: tuple[Spot, ...]
    topic: tuple[int, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    apart: float  # the distance of neighbours within a topic


def layout(texts: Sequence[str], vectors: Mapping[int, Matrix] | None = None) -> Layout:
    """Lay out texts, given oldest first. `vectors` are unit vectors by position; without any, words decide."""
    if not texts:
        return Layout((), (), (), (), _MOST_APART)
    bags = [_words_of(text) for text in texts]
    seeds = 1 << (len(texts).bit_length() - 1)
    apart = min(_MOST_APART, math.sqrt(_SHARE * WIDE * HIGH / (math.pi * 2 * seeds)))
    places = _by_meaning(bags, vectors) if vectors else _hashed(bags, seeds)
    middles, nearest = _topics(places, min(seeds, _MOST_SEEDS))
    order = [topic for topic, _ in Counter(nearest.tolist()).most_common()]
    rank = {topic: number for number, topic in enumerate(order)}
    topic = [rank[int(one)] for one in nearest]
    counts = Counter(topic)
    radii = [apart * math.sqrt(counts[number]) + apart / 2 for number in range(len(order))]
    centres = _spread(middles[order], radii)
    labels = [_spelled(label, texts, topic, number) for number, label in enumerate(_labels(bags, topic, len(order)))]
    spots = tuple(
        Spot(label, round(x, 1), round(y, 1), round(radius, 1), counts[number])
        for number, (label, (x, y), radius) in enumerate(zip(labels, centres, radii, strict=True))
    )
    x, y = _beads(topic, spots, apart)
    return Layout(spots, tuple(topic), x, y, round(apart, 2))


def _beads(topic: Sequence[int], spots: Sequence[Spot], apart: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Place each bead by its number within its topic: the oldest in the middle, later ones on a spiral around it."""
    seen: Counter[int] = Counter()
    xs, ys = [], []
    for one in topic:
        turn, far = seen[one] * _GOLDEN, apart * math.sqrt(seen[one] + 0.35)
        seen[one] += 1
        xs.append(round(spots[one].x + far * math.cos(turn), 1))
        ys.append(round(spots[one].y + far * math.sin(turn), 1))
    return tuple(xs), tuple(ys)


# Places by meaning or by words


def _words_of(text: str) -> list[str]:
    """Return the words that say what a text is about, each once."""
    found = dict.fromkeys(words(_POSSESSIVE.sub("", text[:600])))
    return [w for w in found if len(w) > 2 and not w.isdigit() and w not in STOP_WORDS and w not in _SAYING]


def _by_meaning(bags: Sequence[list[str]], vectors: Mapping[int, Matrix]) -> Matrix:
    """Return a row for each text: its vector, or for a text without one the mean of those that share its words."""
    width = len(next(iter(vectors.values())))
    rows = np.zeros((len(bags), width), dtype=np.float32)
    for position, vector in vectors.items():
        rows[position] = vector
    rows -= rows[sorted(vectors)].mean(axis=0)  # what all texts have in common says nothing about topics
    missing = [position for position in range(len(bags)) if position not in vectors]
    if missing:
        known: dict[str, list[int]] = {}
        for position in sorted(vectors):
            for word in bags[position]:
                known.setdefault(word, []).append(position)
        for position in missing:
            near = [other for word in bags[position] for other in known.get(word, ())[:50]]
            rows[position] = rows[near].mean(axis=0) if near else 0
    return _unit(rows)


def _hashed(bags: Sequence[list[str]], seeds: int) -> Matrix:
    """Return a row for each text by its words, weighed by how rare each is in the oldest texts."""
    seen = Counter(word for bag in bags[:seeds] for word in bag)
    rows = np.zeros((len(bags), _HASHED), dtype=np.float32)
    for position, bag in enumerate(bags):
        for word in bag:
            digest = zlib.crc32(word[:6].encode())  # the beginning of a word, so that its forms are one
            rows[position, digest % _HASHED] += math.log(1 + seeds / (1 + seen[word]))
    return _unit(rows)


def _unit(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    made: Matrix = rows / np.where(lengths > 0, lengths, 1)
    return made


# Topics


def _topics(places: Matrix, seeds: int) -> tuple[Matrix, NDArray[np.int64]]:
    """Find topics in the first rows by spherical k-means from far-apart rows, and the nearest topic of every row."""
    first = places[:seeds]
    wanted = max(1, min(14, round(1.1 * math.sqrt(seeds))))
    middles = _far_apart(first, wanted)
    for _ in range(_ROUNDS):
        nearest = np.argmax(first @ middles.T, axis=1)
        moved = _unit((nearest[:, None] == np.arange(len(middles))).astype(np.float32).T @ first)
        empty = ~np.isin(np.arange(len(middles)), nearest)
        moved[empty] = middles[empty]
        if np.allclose(moved, middles, atol=1e-5):
            break
        middles = moved
    return middles, np.argmax(places @ middles.T, axis=1)


def _far_apart(rows: Matrix, wanted: int) -> Matrix:
    """Return rows to begin with: the one nearest to all others, then each time the one that is least like those."""
    chosen = [int(np.argmax(rows @ rows.mean(axis=0)))]
    likeness = rows @ rows[chosen[0]]
    while len(chosen) < wanted:
        chosen.append(int(np.argmin(likeness)))
        likeness = np.maximum(likeness, rows @ rows[chosen[-1]])
    return rows[chosen].copy()


def _spread(middles: Matrix, radii: Sequence[float]) -> list[tuple[float, float]]:
    """Put topics on the board: like ones near each other, none over another, all within it."""
    count = len(radii)
    if count == 1:
        return [(WIDE / 2, HIGH / 2)]
    centred = middles - middles.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    plane = centred @ axes[:2].T if len(axes) > 1 else np.column_stack([centred @ axes[0], np.zeros(count)])
    signs = np.sign(plane[np.argmax(np.abs(plane), axis=0), np.arange(2)])  # an axis has no direction of its own
    plane = plane * np.where(signs == 0, 1, signs)
    plane = 2 * (np.argsort(np.argsort(plane, axis=0, kind="stable"), axis=0) + 0.5) / count - 1  # the whole board
    ring = np.array([[math.cos(n * _GOLDEN), math.sin(n * _GOLDEN)] for n in range(count)])
    spots = 0.9 * plane + 0.15 * ring
    at = np.array([WIDE / 2, HIGH / 2 + _MARGIN / 2]) + spots * np.array([WIDE * 0.42, HIGH * 0.38])
    room = np.array([radius + 15 for radius in radii])
    for _ in range(240):
        at = _apart(at, room)
    return [(float(x), float(y)) for x, y in at]


def _apart(at: Matrix, room: Matrix) -> Matrix:
    """Push overlapping circles from each other, and all of them into the board."""
    gaps = at[:, None, :] - at[None, :, :]
    far = np.linalg.norm(gaps, axis=2) + np.eye(len(at))
    over = np.maximum(room[:, None] + room[None, :] - far, 0) * (1 - np.eye(len(at)))
    moved = at + 0.35 * (gaps / np.maximum(far, 1e-6)[:, :, None] * over[:, :, None]).sum(axis=1)
    inset = np.minimum(room[:, None], np.array([WIDE / 2, HIGH / 2]))
    low, high = inset + np.array([4, _MARGIN - 4]), np.array([WIDE - 4, HIGH - 4]) - inset
    kept: Matrix = np.clip(moved, np.minimum(low, high), np.maximum(low, high))
    return kept


# Labels


def _labels(bags: Sequence[list[str]], topic: Sequence[int], count: int) -> list[str]:
    """Name each topic by the word that most of its texts have and few others; no two by the same one."""
    inside = [Counter[str]() for _ in range(count)]
    for bag, number in zip(bags, topic, strict=True):
        inside[number].update(bag)
    everywhere = Counter[str]()
    for counter in inside:
        everywhere.update(counter)
    taken: set[str] = set()
    named = []
    for counter in inside:
        best = max(
            (word for word in counter if fold(word)[:5] not in taken),
            key=lambda word: (counter[word] ** 1.5 / everywhere[word], counter[word], word),
            default="",
        )
        taken.add(fold(best)[:5])
        named.append(best)
    return named


def _spelled(label: str, texts: Sequence[str], topic: Sequence[int], number: int) -> str:
    """Return a word as most texts of a topic write it; a capital stays only if they all give it one."""
    forms = Counter(
        form
        for text, one in zip(texts, topic, strict=True)
        if one == number
        for form in _SPELLED.findall(_POSSESSIVE.sub("", text[:600]))
        if fold(form) == label
    )
    if not forms:
        return label
    small = [form for form in forms if form.islower()]
    chosen: str = max(small or forms, key=lambda form: (forms[form], form))
    return chosen
