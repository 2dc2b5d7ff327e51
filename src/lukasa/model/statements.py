"""Compare two statements by rules: do they say the same, or do they give one thing two values?

Vectors cannot tell: "the villain is called Malachar" and "the villain is called Vexis" are close. The rules look at the
words in which two sentences differ. They prefer a missed contradiction to an invented one, because then both statements
are kept.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache

from msgspec import Struct

from lukasa.model.text import fold, terms, words

_WORD = re.compile(r"[^\W_]+(?:[.:/@_-][^\W_]+)*")
_NEGATIONS = frozenset(
    "not no never dont doesnt didnt isnt arent wasnt werent cannot cant wont without stopped".split()
)
_FILLERS = frozenset("now currently actually presently really always usually generally the a an please".split())
_SKIPPED = _FILLERS - {"the"}
_COPULAS = frozenset("is are was were".split())
_CLAIMING = frozenset("the my our".split())
_PREPOSITIONS = frozenset("in by at on to with for from as of".split())
_PARTICIPLES = frozenset(
    "born written known built held made sung won done set kept led found sold sent bought taught worn".split()
)
# If one text has such a word and the other has none or another, they say different things.
_TURNING = frozenset(
    """was had did used will would can could should may might must before after above below if unless until only all
    some any or but off out under over up down more most less least than because when while other""".split()
)
_TENSES = {"were": "was", "wasnt": "was", "werent": "was", "didnt": "did"}
_SMALL = frozenset(
    "about against as at between by during for from how in into of on to what where which who with".split()
)
# Nouns that have one value at a time, so that "the deadline is Friday" gives way to "the deadline is Monday".
_ATTRIBUTES = frozenset(
    """name title colour color deadline version status capital address email phone birthday age price port language
    favourite favorite location timezone budget password username nickname role job employer owner author editor manager
    maintainer boss leader chairperson president director head host spouse husband wife partner genre sport position
    religion nationality citizenship currency default villain hero heroine protagonist antagonist narrator goal limit
    timeout framework database branch license licence size height weight rate salary preference""".split()
)
# Verbs that have one object at a time. All others (likes, has, visited, uses …) may have many.
_ONE_VALUED = (
    ("lives", "in"), ("live", "in"), ("lives", "at"), ("live", "at"), ("resides", "in"), ("reside", "in"),
    ("works", "at"), ("work", "at"), ("works", "in"), ("works", "as"), ("work", "as"), ("worked", "in"),
    ("died", "in"), ("died", "on"), ("plays", "for"), ("play", "for"), ("plays", "the"), ("speaks", "the"),
    ("prefers",), ("prefer",), ("reports", "to"), ("report", "to"), ("belongs", "to"), ("defaults", "to"),
    ("starts", "at"), ("starts", "on"), ("ends", "on"), ("ends", "at"), ("runs", "on"), ("listens", "on"),
    ("costs",), ("weighs",), ("expires", "on"), ("meets", "on"), ("takes", "place"), ("set", "to"),
)  # fmt: skip
# Different wordings of one relation; the left is rewritten to the right before the comparison.
_PARAPHRASES = (
    (("moved", "to"), ("lives", "in")),
    (("has", "moved", "to"), ("lives", "in")),
    (("relocated", "to"), ("lives", "in")),
    (("works", "for"), ("works", "at")),
    (("work", "for"), ("work", "at")),
    (("joined",), ("works", "at")),
    (("is", "named"), ("is", "called")),
    (("no", "longer"), ("not",)),
    (("do", "not"), ("not",)),
    (("does", "not"), ("not",)),
    (("dont",), ("not",)),
    (("doesnt",), ("not",)),
    (("isnt",), ("is", "not")),
)
_BY_FIRST_WORD = {old[0]: [pair for pair in _PARAPHRASES if pair[0][0] == old[0]] for old, _ in _PARAPHRASES}
_FIRST_WORDS = frozenset(_BY_FIRST_WORD)


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


_RELATIONS = _COPULAS | {_singular(verb[0]) for verb in _ONE_VALUED}


class Statement(Struct, frozen=True):
    """A sentence as folded words, with the names and numbers marked."""

    words: tuple[str, ...]
    terms: tuple[str, ...]
    specifics: frozenset[str]
    negated: bool

    @property
    def turns(self) -> frozenset[str]:
        """Words that change the meaning of the rest: was, may, before, only, if."""
        return _TURNING.intersection(_TENSES.get(word, word) for word in self.words)

    @property
    def past(self) -> frozenset[str]:
        """Terms in the past tense: worked, moved."""
        return frozenset(term for word in self.words if word.endswith("ed") for term in terms(word))

    @property
    def small(self) -> frozenset[str]:
        """The other words that are not index terms but still have a meaning: in, from, about."""
        return _SMALL.intersection(self.words)


@lru_cache(maxsize=32768)
def statement(text: str) -> Statement:
    raw = _raw(text)
    words = _words(text)
    # The first word is always capitalised, so its capital does not show that it is a name.
    specifics = {fold(w) for i, w in enumerate(raw) if _has_digit(w) or (i and w[0].isupper())}
    return Statement(words, tuple(dict.fromkeys(terms(text))), frozenset(specifics), not _NEGATIONS.isdisjoint(words))


def _raw(text: str) -> list[str]:
    return _WORD.findall(text.replace("’", "'").replace("'", ""))


def _is_plain(text: str) -> bool:
    """Whether no character joins two words, so that the words are those of the keyword index."""
    ended = text.rstrip(".:")
    for joint in ".:/@_-`":
        if joint in ended:
            return False
    return text.isascii()


@lru_cache(maxsize=32768)
def _words(text: str) -> tuple[str, ...]:
    """Folded words in one wording, without fillers."""
    if _is_plain(text):
        folded = words(text)
    else:
        folded = _raw(text.lower()) if text.isascii() else [fold(word) for word in _raw(text)]
    return tuple([word for word in _rewrite(folded) if word not in _SKIPPED])


def _has_digit(word: str) -> bool:
    return not word.isalpha() and any(c.isdigit() for c in word)


def _rewrite(words: list[str]) -> list[str]:
    if _FIRST_WORDS.isdisjoint(words):
        return words
    out: list[str] = []
    i = 0
    while i < len(words):
        for old, new in _BY_FIRST_WORD.get(words[i], ()):
            if tuple(words[i : i + len(old)]) == old:
                out.extend(new)
                i += len(old)
                break
        else:
            out.append(words[i])
            i += 1
    return out


def says_the_same(new: str, old: str) -> bool:
    """Whether `new` adds nothing to `old`: same names, numbers, polarity, time and conditions, no other content word.

    Asked only for texts that an embedder finds close; it keeps close texts with different facts apart. One word is
    enough for that: to buy a house is not to sell it, and a vector cannot tell. Two texts that differ in a word and
    mean the same are both kept, which loses nothing.
    """
    a, b, own = statement(new), statement(old), content_words(new)
    if not own or not set(own).issubset(b.terms):
        return False
    if a.negated != b.negated or a.specifics - b.specifics - _filler_terms().union(b.terms):
        return False
    if _numbers(a) != _numbers(b) or a.turns != b.turns or a.small - b.small:
        return False
    if (a.past ^ b.past).intersection(a.terms) or not _in_order(a.terms, b.terms):
        return False
    return not contradicts(new, old)


def content_words(text: str) -> list[str]:
    """The terms of a text without fillers. A text that lacks one of them does not say the same."""
    fillers = _filler_terms()
    return [term for term in dict.fromkeys(terms(text)) if term not in fillers]


def _in_order(some: tuple[str, ...], those: tuple[str, ...]) -> bool:
    """Whether two texts have their shared terms in the same order: only the order tells who manages whom."""
    shared = set(some).intersection(those)
    return [term for term in some if term in shared] == [term for term in those if term in shared]


@cache
def _filler_terms() -> frozenset[str]:
    """The index terms of the fillers, computed at the first call: this loads the stemmer."""
    return frozenset(term for word in _FILLERS for term in terms(word))


def _numbers(s: Statement) -> set[str]:
    return {w for w in s.words if any(c.isdigit() for c in w)}


def contradicts(new: str, old: str) -> str:
    """The reason why both cannot hold at once; empty if the rules see no contradiction."""
    if not any(map(frozenset.intersection, _head_and_tail(new), _head_and_tail(old))):
        return ""
    a, b = _words(new), _words(old)
    if a == b:
        return ""
    return _negates(a, b) or _revalues(new, old)


@lru_cache(maxsize=32768)
def _head_and_tail(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The first four and the last four words: two statements about one thing share some. A cheap first check."""
    plain = text.lower().split()
    return frozenset(plain[:4]), frozenset([word.rstrip(".,;:!?") for word in plain[-4:]])


# Two statements contradict each other only if they share a subject or a role. So two exact lookups find the statements
# that may contradict a new one, and little else.

_LONG = 1000  # characters; a longer text has no role at its end
_BEGINNING = 12  # words in which the subject is searched


@lru_cache(maxsize=8192)
def subject(text: str) -> str:
    """The subject of a statement: its beginning up to the first word that may relate it to one value.

    Words are in one wording, singular, without negations; if no word relates, the whole beginning is the subject. Two
    statements that contradict each other by their beginning have the same subject.
    """
    words = _words(text if len(text) <= _LONG else text[:_LONG])
    beginning = words[:_BEGINNING]
    if not _NEGATIONS.isdisjoint(beginning):
        beginning = tuple([word for word in words if word not in _NEGATIONS][:_BEGINNING])
    bare = [_singular(word) if word[-1] == "s" else word for word in beginning]
    if not _RELATIONS.isdisjoint(bare):
        bare = bare[: next(at for at, word in enumerate(bare, 1) if word in _RELATIONS)]
    return " ".join(bare)


@lru_cache(maxsize=8192)
def role(text: str) -> str:
    """The role that a statement gives to its beginning, as in "Vexis | is the villain"; empty if it gives none.

    Two statements that contradict each other by their end have the same role.
    """
    words = _words(text) if len(text) <= _LONG else ()
    for at in range(len(words) - 3, 0, -1):
        if words[at] in _COPULAS and words[at + 1] in _CLAIMING:
            return " ".join(words[at:])
    return ""


def _negates(a: tuple[str, ...], b: tuple[str, ...]) -> str:
    if _NEGATIONS.isdisjoint(a) == _NEGATIONS.isdisjoint(b):
        return ""
    bare = [tuple(_singular(w) for w in words if w not in _NEGATIONS) for words in (a, b)]
    return "one negates the other" if bare[0] == bare[1] and len(bare[0]) > 1 else ""


def _revalues(new: str, old: str) -> str:
    a, b = _words(new), _words(old)
    prefix = _shared(a, b)
    suffix = _shared(a[prefix:][::-1], b[prefix:][::-1])
    mine = a[prefix : len(a) - suffix]
    theirs = b[prefix : len(b) - suffix]
    if not mine or not theirs or max(len(mine), len(theirs)) > 8:
        return ""
    head, tail = a[:prefix], a[len(a) - suffix :]
    if head and _fixes_one_value(head, mine, theirs, new, old):
        return f"both give a value to the same thing ({prefix} words shared before it)"
    if not head and len(tail) >= 3 and tail[0] in _COPULAS and tail[1] in _CLAIMING:
        return f"both claim the same role ({suffix} words shared after it)"
    return ""


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def _fixes_one_value(head: tuple[str, ...], mine: tuple[str, ...], theirs: tuple[str, ...], new: str, old: str) -> bool:
    """Whether the shared beginning names a thing and a relation that has one value at a time."""
    for i in range(1, len(head)):
        if any(head[i : i + len(v)] == v for v in _ONE_VALUED):
            return True
        if head[i] in _COPULAS and _copula_fixes(head, i, mine, theirs, new, old):
            return True
    return False


def _copula_fixes(
    head: tuple[str, ...], at: int, mine: tuple[str, ...], theirs: tuple[str, ...], new: str, old: str
) -> bool:
    subject, rest = head[:at], head[at + 1 :]
    if rest[:1] == ("called",) or rest[:1] == ("the",):
        return True
    if len(rest) >= 2 and (rest[0].endswith("ed") or rest[0] in _PARTICIPLES) and rest[1] in _PREPOSITIONS:
        return True
    # "a citizen of United | Kingdom": the two values may begin with the same word.
    if any(word in {"of", "from"} and len(rest) - i <= 3 for i, word in enumerate(rest)):
        return True
    one_valued_subject = "of" in subject or any(w in _ATTRIBUTES for w in subject)
    # "The villain is Vexis" fixes one value; "Ada is a citizen of France" and "Ada is married to Tom" may both hold.
    if one_valued_subject or rest:
        return one_valued_subject
    return mine[0] in statement(new).specifics and theirs[0] in statement(old).specifics


@lru_cache(maxsize=8192)
def word_key(words: str) -> int | None:
    """A short number to look words up by; None for no words. Two texts may share one: rules compare the words later."""
    if not words:
        return None
    return int.from_bytes(hashlib.blake2b(words.encode("utf-8"), digest_size=8).digest(), "big", signed=True)
