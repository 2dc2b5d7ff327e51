"""The observer without a language model: it keeps whole sentences of the user, exactly as they were said.

    sentences     split a message into whole sentences
    limits        no question, secret or word to the machine is kept; a doubt is held at most
    classifier    the probability that a sentence is a lasting statement: store it, hold it, or leave it out
    subject       a sentence that says "it" takes the sentence before it along

The text of an observation is its message from `start` to `end`. Nothing is cut, corrected or capitalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lukasa.model.requests import Request, forgetting, request
from lukasa.model.transcript import Utterance
from lukasa.model.values import Gate, Lifetime
from lukasa.observe import cues
from lukasa.observe.classifier import Embed, Linear, Odds, judge
from lukasa.observe.observation import Observation, Priority
from lukasa.observe.sentences import SentenceSpan, sentences

STORED = 0.8  # the least confidence of a stored sentence
REQUESTED = 0.95
CERTAIN = 1.0  # the confidence of a hold: a path or a command in the sentence does not lift it
LEAST_WORDS = 3
MOST_SENTENCE = 500  # characters; a longer sentence is left out as a whole
MOST_REQUEST = 2000  # characters of a sentence that somebody asks to remember; a longer one is left out as a whole
MOST_BEFORE = 2  # sentences that a sentence without a subject takes along
_LEFT_OUT = (cues.TO_THE_MACHINE, cues.RECALLED, cues.SECRET, cues.REPLACED)
_HELD_AT_MOST = (
    (cues.DOUBT, "said with doubt"),
    (cues.UNREAL, "imagined"),
    (cues.TOLD, "the words of somebody else"),
    (cues.PASSING, "true for a moment only"),
)
# A hint for the write path, which decides by the words of the taxonomy first.
_CATEGORIES = (
    (cues.TASTE, "preferences"),
    (cues.DECIDED, "projects"),
    (cues.OWN, "people-relationships"),
    (cues.WEIGHTY, "rules-conventions"),
    (cues.ROLE, "people-relationships"),
    (cues.PLACED, "system-architecture"),
)
UNCLEAR = "not clearly a lasting statement"
NO_SUBJECT = "it does not name its subject"
_POINTERS = frozenset(("", "it", "this", "that"))


class _Statement(Struct, frozen=True):
    """A sentence for the classifier: the sentence `here` of a message. `start` is where it begins with its subject."""

    message: str
    text: str
    spans: Sequence[SentenceSpan]
    here: int
    start: int

    @property
    def said(self) -> str:
        span = self.spans[self.here]
        return self.text[span.start : span.end]

    @property
    def whole(self) -> str:
        """The sentence, and those before it that name its subject."""
        return self.text[self.start : self.spans[self.here].end]


def observe(utterances: Iterable[Utterance], embed: Embed | None = None) -> list[Observation]:
    """Return the statements of the user in these messages. With `embed`, the classifier uses vectors, too."""
    looked_at = [each for u in utterances if u.role == "user" for each in _sentences(u.text, u.id)]
    statements = [each for each in looked_at if isinstance(each, _Statement)]
    texts = list(dict.fromkeys(text for each in statements for text in (each.said, each.whole)))
    judgement = judge(texts, embed)
    odds = dict(zip(texts, judgement.odds, strict=True))
    found: list[Observation] = []
    for each in looked_at:
        if isinstance(each, Observation):
            found.append(each)
        elif (observed := _observed(each, _mean(odds[each.said], odds[each.whole]), judgement.model)) is not None:
            found.append(observed)
    return list({(o.text.casefold(), o.message): o for o in found}.values())


def look(text: str, message: str = "", embed: Embed | None = None) -> list[Observation]:
    """Return the statements in one message of the user."""
    return observe([Utterance(message, "user", text, 0)], embed)


def limit(sentence: str) -> str | None:
    """Return why a sentence is held at most; "" if it may be stored, None if it is left out."""
    if cues.ASKING.search(sentence) or any(pattern.search(sentence) for pattern in _LEFT_OUT):
        return None
    return next((reason for pattern, reason in _HELD_AT_MOST if pattern.search(sentence)), "")


def _sentences(text: str, message: str) -> Iterator[Observation | _Statement]:
    """Yield the requests of a message as observations, and its other sentences that may be statements."""
    spans = sentences(text)
    for here, span in enumerate(spans):
        if span.end - span.start > MOST_REQUEST:
            continue
        each = _Statement(message, text, spans, here, spans[_first(text, spans, here)].start)
        asked = request(each.said)
        if asked is not None:
            yield from _requested(asked, each)
        elif forgetting(each.said) is None and _may_state(each.said):
            yield each


def _may_state(said: str) -> bool:
    return len(said) <= MOST_SENTENCE and len(said.split()) >= LEAST_WORDS and not said.endswith(":")


def _requested(asked: Request, each: _Statement) -> Iterator[Observation]:
    """Yield the sentence of a request, or the sentence before it for "remember that"."""
    about = each.here
    if asked.content.strip(" .!").lower() in _POINTERS:
        about -= 1
    if about < 0 or asked.lifetime is Lifetime.CONVERSATION:
        return
    span = each.spans[about]
    said = each.text[span.start : span.end]
    if any(pattern.search(said) for pattern in _LEFT_OUT) or len(said) > MOST_REQUEST:
        return
    weight = asked.importance
    priority: Priority = "medium" if weight is None else "high" if weight > 0.5 else "low"
    yield Observation(
        text=said,
        priority=priority,
        gate=Gate.ALLOW,
        confidence=REQUESTED,
        category="",
        message=each.message,
        start=span.start,
        end=span.end,
        reason="asked to be remembered",
        asked=asked,
    )


def _observed(each: _Statement, odds: Odds, model: Linear) -> Observation | None:
    """Return the observation of a sentence; None if it is left out."""
    limited = limit(each.said)
    if limited is None or odds.fact + odds.doubt < model.hold:
        return None
    text = each.whole
    if any(pattern.search(text) for pattern in _LEFT_OUT):
        return None
    reason = limited or limit(text) or ""
    if cues.SUBJECTLESS.match(text):
        reason = reason or NO_SUBJECT
    if odds.fact < model.store:
        reason = reason or UNCLEAR
    return Observation(
        text=text,
        priority="high" if cues.WEIGHTY.search(each.said) else "medium",
        gate=Gate.HOLD if reason else Gate.ALLOW,
        confidence=CERTAIN if reason else max(STORED, round(odds.fact, 3)),
        category=next((name for pattern, name in _CATEGORIES if pattern.search(each.said)), ""),
        message=each.message,
        start=each.start,
        end=each.spans[each.here].end,
        reason=reason,
    )


def _mean(one: Odds, other: Odds) -> Odds:
    """The odds of a sentence, alone and with its subject: "It crashed." stays junk after a fact."""
    return Odds((one.fact + other.fact) / 2, (one.doubt + other.doubt) / 2, (one.junk + other.junk) / 2)


def _first(text: str, spans: Sequence[SentenceSpan], here: int) -> int:
    """Return the first sentence to keep: an earlier one, if the sentence does not name its subject."""
    first = here
    while first > max(0, here - MOST_BEFORE) and cues.SUBJECTLESS.match(text, spans[first].start):
        before = spans[first - 1]
        if text[before.end : spans[first].start].strip() or spans[here].end - before.start > MOST_SENTENCE:
            break
        first -= 1
    return first
