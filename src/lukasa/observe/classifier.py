"""Say how probably a sentence is a lasting statement, a doubtful one, or neither: a linear model, trained in the repo.

    words       weights of words, pairs of words and cues; always at hand, nothing to load but one file
    vectors     the same with the embedder's vector of the sentence; only for the embedder that the weights name

`python -m bench.train_observer` makes the weights from labelled lines.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct, json

from lukasa.model.arrays import np
from lukasa.model.text import words
from lukasa.observe import cues
from lukasa.ports import Embedder, Vector

Embed = Callable[[Sequence[str]], Vector]
WEIGHTS = Path(__file__).with_name("weights.json")
SCALE = 100  # weights are stored as whole hundredths
_CUES = {
    "asks": cues.ASKING,
    "doubts": cues.DOUBT,
    "unreal": cues.UNREAL,
    "told": cues.TOLD,
    "passing": cues.PASSING,
    "weighty": cues.WEIGHTY,
    "taste": cues.TASTE,
    "decided": cues.DECIDED,
    "own": cues.OWN,
    "regular": cues.REGULAR,
    "role": cues.ROLE,
    "placed": cues.PLACED,
}
_CODE = re.compile(r"[{}=;<>\[\]\\|]|\w\(")
_STEPS = (2, 3, 5, 8, 13)  # numbers of words between which lengths count as alike


class Odds(Struct, frozen=True):
    """The probabilities of the three classes; they sum to 1."""

    fact: float
    doubt: float
    junk: float


class Linear(Struct, frozen=True):
    """One model: for each feature the weights of a fact and of a doubt, against junk. `vector` has a row a dimension.

    A sentence whose fact is as probable as `store` may be stored; one whose fact or doubt is as probable as `hold` may
    be held.
    """

    weights: Mapping[str, tuple[int, int]]
    store: float
    hold: float
    vector: tuple[tuple[int, int], ...] = ()


class Weights(Struct, frozen=True):
    """The trained models, and the digest of the embedder whose vectors the second one knows."""

    digest: str
    words: Linear
    vectors: Linear


@cache
def trained() -> Weights:
    return json.decode(WEIGHTS.read_bytes(), type=Weights)


def usable(embedder: Embedder | None) -> Embed | None:
    """Return the embedder's function, if the weights know its vectors."""
    known = embedder is not None and embedder.model.digest == trained().digest
    return embedder.embed_memories if embedder is not None and known else None


class Judgement(Struct, frozen=True):
    """The odds of sentences, and the model that gave them."""

    odds: tuple[Odds, ...]
    model: Linear


def judge(sentences: Sequence[str], embed: Embed | None = None) -> Judgement:
    """Return the odds of each sentence, by its words and, with an embedder, by its vector."""
    model = trained().words if embed is None else trained().vectors
    scores = [_scores(model, sentence) for sentence in sentences]
    if embed is not None and sentences:
        weights = np.array(model.vector, dtype=np.float32) / SCALE
        by_vector = embed(sentences) @ weights
        scores = [(f + float(v[0]), d + float(v[1])) for (f, d), v in zip(scores, by_vector, strict=True)]
    return Judgement(tuple(_odds(fact, doubt) for fact, doubt in scores), model)


def _scores(model: Linear, sentence: str) -> tuple[float, float]:
    fact = doubt = 0
    for feature in features(sentence):
        if (weight := model.weights.get(feature)) is not None:
            fact += weight[0]
            doubt += weight[1]
    return fact / SCALE, doubt / SCALE


def _odds(fact: float, doubt: float) -> Odds:
    """The softmax of the scores; that of junk is 0."""
    most = max(fact, doubt, 0.0)
    powers = [math.exp(score - most) for score in (fact, doubt, 0.0)]
    total = sum(powers)
    return Odds(*(power / total for power in powers))


def features(sentence: str) -> set[str]:
    """Return the features of a sentence: its words and pairs of words, the first ones apart, its cues and its form."""
    said = words(sentence)
    found = {"all", *said, *(f"{one} {two}" for one, two in itertools.pairwise(said))}
    found |= {f"^{' '.join(said[:count])}" for count in (1, 2) if len(said) >= count}
    found |= {f"cue:{name}" for name, phrases in _CUES.items() if phrases.search(sentence)}
    found |= {f"form:{name}" for name in _form(sentence, said)}
    return found


def _form(sentence: str, said: Sequence[str]) -> Iterator[str]:
    yield f"length {sum(len(said) > step for step in _STEPS)}"
    opening = next((word for word in said if word not in ("please", "bitte", "now", "jetzt", "then", "dann")), "")
    if opening in cues.TASKS:
        yield "task"
    if sentence[-1:] == "!":
        yield "exclaimed"
    if sentence[:1].islower():
        yield "lower"
    if any(character.isdigit() for character in sentence):
        yield "digit"
    if "`" in sentence:
        yield "command"
    if _CODE.search(sentence):
        yield "code"
    if any(word[:1].isupper() for word in sentence.split()[1:]):
        yield "name"
