"""Compare two statements: do they say the same, or may the later one replace the earlier one?

Vectors tell that two statements concern one thing; the words in which they differ tell how. A comparison retires
nothing. It decides which statement a read shows first, so it may err: both statements stay.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from typing import NamedTuple

from msgspec import Struct

from lukasa.model.text import asks, fold, is_unspaced, terms, words
from lukasa.model.values import Relation

_WORD = re.compile(r"[^\W_]+(?:[.:/@_-][^\W_]+)*")
_NEGATIONS = frozenset(
    "not no never dont doesnt didnt isnt arent wasnt werent cannot cant wont without stopped".split()
)
_FILLERS = frozenset("now currently actually presently really always usually generally the a an please".split())
_SKIPPED = _FILLERS - {"the"}
_COPULAS = frozenset("is are was were".split())
_NAMING = _COPULAS | frozenset("called named ist sind war heisst est".split())
_AUXILIARIES = _COPULAS | frozenset(
    """be been has have had will can must should do does did
    ist sind war waren hat haben hatte wird werden wurde wurden heisst est sont""".split()
)
_ARTICLES = frozenset("the a an this that these those der die das den dem ein eine einen le la les".split())
_PERSONS = {
    **dict.fromkeys("i me my mine myself ich mich mir mein meine meinen meinem meiner".split(), "i"),
    **dict.fromkeys("we us our ours ourselves wir uns unser unsere unserem unseren".split(), "we"),
    **dict.fromkeys("you your yours yourself".split(), "you"),
}
_CALENDAR = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag""".split()
)
_COUNTED = frozenset("one two three four five six seven eight nine ten eleven twelve".split())
_CONDITIONS = frozenset("if unless until when while during before after only with without".split())
# Words with which people tell that something is no longer as it was.
_CHANGE = tuple(
    """now,no longer,anymore,any more,these days,from now on,as of,instead,again,back,new,changed,changes,moved,moving,
    switched,switching,renamed,replaced,became,turned,postponed,rescheduled,delayed,slipped,raised,lowered,increased,
    decreased,reduced,renewed,updated,upgraded,migrated,left,quit,retired,joined,took over,started,stopped,gave up,
    got married,divorced,promoted,transferred,sold,bought,broke up,not,
    jetzt,nun,nicht mehr,statt,stattdessen,ab sofort,inzwischen,mittlerweile,neu,neue,neuen,geandert,umgezogen,gezogen,
    gewechselt,verschoben,umbenannt,ersetzt,wieder""".replace("\n    ", "").split(",")
)
_CLAIMING = frozenset("the my our".split())
_PREPOSITIONS = frozenset("in by at on to with for from as of".split())
_SINGLE = _PREPOSITIONS - {"with"}  # one has many companions, and mostly one place, time, owner or role
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
# Different wordings of one relation; the left is rewritten to the right before the comparison.
_PARAPHRASES = (
    (("moved", "to"), ("lives", "in")),
    (("has", "moved", "to"), ("lives", "in")),
    (("relocated", "to"), ("lives", "in")),
    (("works", "for"), ("works", "at")),
    (("work", "for"), ("work", "at")),
    (("joined",), ("works", "at")),
    (("is", "named"), ("is", "called")),
    (("these", "days"), ()),
    (("from", "now", "on"), ()),
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
    return not (a.past ^ b.past).intersection(a.terms) and _in_order(a.terms, b.terms)


def content_words(text: str) -> list[str]:
    """The terms of a text without fillers. A text that lacks one of them does not say the same."""
    fillers = _filler_terms()
    return [term for term in dict.fromkeys(terms(text)) if term not in fillers]


def _restates(new: str, old: str) -> bool:
    """Whether two texts have the same content words, and differ at most in the place of one part."""
    a, b = statement(new), statement(old)
    mine, theirs = tuple(content_words(new)), tuple(content_words(old))
    if not mine or set(mine) != set(theirs) or a.negated != b.negated or a.turns != b.turns:
        return False
    if _numbers(a) != _numbers(b) or (a.past ^ b.past):
        return False
    moved = _difference(mine, theirs)
    if not moved.mine:
        return True
    at = moved.theirs.index(moved.mine[0])
    return moved.mine == (*moved.theirs[at:], *moved.theirs[:at])


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


# Statements that may replace each other share a subject or a role, or are near in meaning. The first two are exact
# lookups in every store.

_LONG = 1000  # characters; a longer text has no role at its end
_BEGINNING = 12  # words in which the subject is searched
_OPENING = 2  # words that name the subject if no auxiliary follows


@lru_cache(maxsize=8192)
def subject(text: str) -> str:
    """The subject of a statement: its beginning up to the first "is", "has" or "will", otherwise its first two words.

    Words are in one wording, singular, without articles and negations.
    """
    words = _words(text if len(text) <= _LONG else text[:_LONG])
    apart = _NEGATIONS | _ARTICLES
    bare = [_singular(word) for word in words if word not in apart][:_BEGINNING]
    if not _AUXILIARIES.isdisjoint(bare[1:]):
        return " ".join(bare[: next(at for at, word in enumerate(bare) if at and word in _AUXILIARIES) + 1])
    return " ".join(bare[:_OPENING])


@lru_cache(maxsize=8192)
def role(text: str) -> str:
    """The role that a statement gives to its beginning, as in "Vexis | is the villain"; empty if it gives none."""
    words = _words(text) if len(text) <= _LONG else ()
    for at in range(len(words) - 3, 0, -1):
        if words[at] in _COPULAS and words[at + 1] in _CLAIMING:
            return " ".join(words[at:])
    return ""


# Comparing

NEAR, _CHANGED, NEARER, NEAREST = 0.84, 0.85, 0.90, 0.95  # cosines that need ever fewer signs in the words
_SENTENCE = 400  # characters; a longer text says many things, and none of them replaces another text
_TEMPLATE = 3  # words of one differing part, in two texts of the same wording


@lru_cache(maxsize=32768)
def is_statement(text: str) -> bool:
    """Whether a text is a sentence or two that neither ask nor exclaim. A turn of a talk replaces no other."""
    if len(text) > _SENTENCE or asks(text):
        return False
    return len([part for part in text.replace("\n", ". ").split(". ") if part.strip(" .")]) <= 2


class Likeness(NamedTuple):
    """How a statement relates to an earlier one, and the reason; `valued` if they put two values in one place."""

    relation: Relation
    reason: str
    valued: bool = False


def compare(new: str, old: str, cosine: float | None = None, same_above: float = 1.0) -> Likeness | None:
    """How a statement relates to an earlier one; None if they do not concern the same thing.

    `cosine` is that of their vectors, None if one has none. Above `same_above` two wordings may say the same.
    """
    if not is_statement(new) or not is_statement(old):
        return None
    if _is_unspaced(new) or _is_unspaced(old):
        cosine = None  # an embedder for languages with spaces finds all such texts close
    if cosine is not None and cosine > same_above and _restates(new, old):
        return Likeness(Relation.SAME, f"cosine {cosine:.3f}, and no name, number, negation or other word differs")
    a, b = _subjects(new), _subjects(old)
    if not a or not b or sorted(a) == sorted(b):  # the same words in another order: who calls whom
        return None
    if cosine is None and subject(new) != subject(old) and (not role(new) or role(new) != role(old)):
        return None
    difference = _difference(a, b)
    sign = _negates(_words(new), _words(old)) or _claims(new, old)
    if not sign and (not _share_subject(new, old) or _of_another(difference, new, old)):
        return None
    value = ""
    if not sign and _conditions(new) == _conditions(old):
        value = _revalues(difference, new, old)
        sign = value or _says_change(new, old, cosine)
        if not sign and cosine is not None and cosine >= NEAREST:
            sign = f"cosine {cosine:.3f}, and they are not the same"
    if sign and (cosine is None or cosine >= NEAR):
        return Likeness(Relation.UPDATE, sign, bool(value))
    if cosine is None or not difference.head:
        return None
    if cosine >= NEARER or (cosine >= NEAR and (sign or _says_change(new, old, NEARER))):
        return Likeness(Relation.CLOSE, f"both have the same subject, and a cosine of {cosine:.3f}")
    return None


def replaces(new: str, old: str) -> str:
    """The reason why a statement may replace an earlier one, by their words alone; empty if there is none."""
    found = compare(new, old)
    return found.reason if found is not None and found.relation is Relation.UPDATE else ""


@lru_cache(maxsize=32768)
def _is_unspaced(text: str) -> bool:
    return not text.isascii() and any(is_unspaced(character) for character in text)


class Unshared(NamedTuple):
    """Two texts without their shared beginning and end."""

    head: tuple[str, ...]
    mine: tuple[str, ...]
    theirs: tuple[str, ...]
    tail: tuple[str, ...]


def _difference(a: tuple[str, ...], b: tuple[str, ...]) -> Unshared:
    prefix = _shared(a, b)
    suffix = _shared(a[prefix:][::-1], b[prefix:][::-1])
    return Unshared(a[:prefix], a[prefix : len(a) - suffix], b[prefix : len(b) - suffix], a[len(a) - suffix :])


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


@lru_cache(maxsize=32768)
def _subjects(text: str) -> tuple[str, ...]:
    """The words of a text without articles, with one word for every form of a pronoun."""
    out: list[str] = []
    for word in _words(text):
        if word not in _ARTICLES:
            out.extend(word if is_unspaced(word[0]) else (_PERSONS.get(word) or _singular(word),))
    return tuple(out)


def _share_subject(new: str, old: str) -> bool:
    """Whether the first word of one text is in the other: "the API" and "the database" are two subjects."""
    a, b = _stems(new), _stems(old)
    return a[0] in b or b[0] in a


@lru_cache(maxsize=32768)
def _stems(text: str) -> tuple[str, ...]:
    return tuple([terms(word)[0] if word.isalpha() else word for word in _subjects(text)])


def _of_another(d: Unshared, new: str, old: str) -> bool:
    """Whether two texts of one wording differ in the thing that they concern, not only in its value.

    So do "the deadline of the | report | is Friday" and "… of the | slides | is Monday": they differ before the verb,
    or in two parts.
    """
    if not d.mine or not d.theirs:  # one adds something to the other, unless it corrects it: "Ana, not Anna"
        return _NEGATIONS.isdisjoint(d.mine) and not _change_word(new, old)
    if _differ_before_verb(_subjects(new), _subjects(old)):
        return True
    names = _names(new) | _names(old)
    if d.mine[-1] in names and d.theirs[-1] in names and not names.union(_PREPOSITIONS).issuperset(d.tail):
        return True  # "the train to | Rome | costs 40 euros"
    at = next((n for n, word in enumerate(d.mine) if word in d.theirs), 0)
    if not at or at != d.theirs.index(d.mine[at]) or d.mine[at] in names:  # no shared word, or one inside a name
        return False
    rest = _difference(d.mine[at:], d.theirs[at:])
    both = bool(rest.mine and rest.theirs)
    return both and at <= _TEMPLATE and _says_much(d.mine[:at]) and _says_much(d.theirs[:at])


def _differ_before_verb(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether each text has a word before its "is" or "has" that the other text lacks."""
    mine, theirs = (_before_verb(words) for words in (a, b))
    return bool(mine.difference(b) and theirs.difference(a))


def _before_verb(words: tuple[str, ...]) -> set[str]:
    return set(words[: next((at for at, word in enumerate(words) if word in _AUXILIARIES), 0)])


def _says_much(part: tuple[str, ...]) -> bool:
    """Whether words hold more than auxiliaries and prepositions."""
    return not _AUXILIARIES.union(_PREPOSITIONS).issuperset(part)


@lru_cache(maxsize=8192)
def _names(text: str) -> frozenset[str]:
    return frozenset(_singular(word) for word in statement(text).specifics if not _has_digit(word))


def _negates(a: tuple[str, ...], b: tuple[str, ...]) -> str:
    if _NEGATIONS.isdisjoint(a) == _NEGATIONS.isdisjoint(b):
        return ""
    bare = [tuple(_singular(w) for w in words if w not in _NEGATIONS) for words in (a, b)]
    return "one negates the other" if bare[0] == bare[1] and len(bare[0]) > 1 else ""


def _claims(new: str, old: str) -> str:
    """Two holders of one role: "Vexis | is the villain", "the villain is | Vexis"."""
    mine, theirs = role(new), role(old)
    if mine and mine == theirs:
        return "both claim the same role" if mine.split()[1] == "the" else ""
    held = _bare_role(theirs) if theirs else _bare_role(mine)
    about = subject(new) if theirs else subject(old)
    return "both say who has the same role" if held and held == _bare_role(about) else ""


def _bare_role(words: str) -> list[str]:
    """The words of a role or a subject without what ties them to the rest."""
    apart = _COPULAS | _ARTICLES | _CLAIMING
    return [_singular(word) for word in words.split() if word not in apart]


def _revalues(d: Unshared, new: str, old: str) -> str:
    """Two values in one place: two numbers, or two names after "is" or after a preposition."""
    if not d.head or not d.mine or not d.theirs:
        return ""
    if _number(d.mine) and _number(d.theirs):
        return "they give the same thing two numbers"
    if d.mine[0] not in _names(new) or d.theirs[0] not in _names(old):
        return ""
    if (d.mine[0] in _CALENDAR) != (d.theirs[0] in _CALENDAR):
        return ""  # born in May, born in Ulm
    head = d.head
    while head and head[-1] in _names(new):  # the two values may begin with the same name: "South | Korea"
        head = head[:-1]
    before = head[-1] if head else ""
    if before in _NAMING or (before in _SINGLE and not _tells_an_event(head)):
        return "they give the same thing two names"
    return ""


def _number(part: tuple[str, ...]) -> bool:
    return any(_has_digit(word) or word in _COUNTED for word in part)


def _tells_an_event(head: tuple[str, ...]) -> bool:
    """Whether a beginning is in the past without an auxiliary: "Ada travelled to …" may have many ends."""
    return head[-2:-1] != () and head[-2].endswith("ed") and _COPULAS.isdisjoint(head)


def _says_change(new: str, old: str, cosine: float | None) -> str:
    """The word with which the new text speaks of a change, if the old one does not."""
    found = _change_word(new, old) if cosine is None or cosine >= _CHANGED else ""
    return f"the later one speaks of a change ({found!r})" if found else ""


def _change_word(new: str, old: str) -> str:
    mine, theirs = (f" {' '.join(words(text))} " for text in (new, old))
    return next((word for word in _CHANGE if f" {word} " in mine and f" {word} " not in theirs), "")


def _conditions(text: str) -> frozenset[str]:
    return _CONDITIONS.intersection(_words(text))


@lru_cache(maxsize=8192)
def word_key(words: str) -> int | None:
    """A short number to look words up by; None for no words. Two texts may share one: rules compare the words later."""
    if not words:
        return None
    return int.from_bytes(hashlib.blake2b(words.encode("utf-8"), digest_size=8).digest(), "big", signed=True)
