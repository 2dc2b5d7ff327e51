"""Check that a quotation says what a model made of it: the same words, numbers, names, negation and certainty.

A missed match only holds a good fact for a person. So the check compares words, and accepts no synonym and no
translation.
"""

from __future__ import annotations

import re

from msgspec import Struct

from lukasa.model.text import STOP_WORDS, terms, words

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\n。！？]")
_CLAUSE_END = re.compile(r"[,;:.!?\n。！？]")
_NEGATIONS = frozenset(
    """not no never none nobody nothing neither nor without dont doesnt didnt isnt arent wasnt werent cannot cant wont
    shouldnt mustnt havent hasnt hadnt wouldnt couldnt nicht kein keine keinen nie niemals pas jamais nunca jamas nao
    non mai""".split()
)
_DOUBTS = frozenset("if unless maybe perhaps might possibly probably vielleicht falls wenn quiza talvez".split())
# A fact speaks of "the user" where the user says "I".
_FIRST_PERSON = frozenset(
    """i im ive me my mine we our ours us ich mir mich mein meine wir uns unser unsere je mon ma mes nous
    notre yo mi nosotros nuestro eu meu minha nos nosso""".split()
)
_FRAME = frozenset(terms("user users speaker said says states stated mentioned mentions"))


class Support(Struct, frozen=True):
    """The result of the check. `missing` are words of the fact without support; an empty `reason` is a pass."""

    reason: str = ""
    missing: tuple[str, ...] = ()


def support(fact: str, message: str, start: int, end: int) -> Support:
    """Say whether the quotation `message[start:end]` supports a fact, and if not, why not.

    The sentence around the quotation counts for negation, doubt and questions: a quotation may be cut out of it.
    """
    quote, sentence = message[start:end], _sentence(message, start, end)
    missing = missing_words(fact, quote)
    if missing:
        count = "1 word" if len(missing) == 1 else f"{len(missing)} words"
        return Support(f"not in its quotation: {count} of the fact", missing)
    if _names(fact, quote) != _names(quote, fact):
        return Support("the fact has the names and numbers of its quotation in another order")
    said = words(sentence)
    if not _NEGATIONS.isdisjoint(words(fact)):
        if _NEGATIONS.isdisjoint(words(quote)):
            return Support("the fact denies something, and its quotation does not")
    elif _denies(sentence, fact):
        return Support("the quotation denies something, and the fact does not")
    if not _DOUBTS.isdisjoint(said) and _DOUBTS.isdisjoint(words(fact)):
        return Support("the quotation is a condition or a doubt, and the fact is neither")
    if sentence.rstrip().endswith(("?", "？")):
        return Support("the quotation is a question")
    return Support()


def missing_words(fact: str, quote: str) -> tuple[str, ...]:
    """Return the content words and numbers of a fact that a quotation does not have."""
    told = set(terms(quote)).union(words(quote))
    framed = _FRAME if not _FIRST_PERSON.isdisjoint(words(quote)) else frozenset()
    absent = [term for term in dict.fromkeys(terms(fact)) if term not in told and term not in framed]
    numbers = set(_NUMBER.findall(quote))
    absent += [number for number in dict.fromkeys(_NUMBER.findall(fact)) if number not in numbers]
    return tuple(dict.fromkeys(absent))


def denies(text: str) -> bool:
    """Say whether a text has a word of negation."""
    return not _NEGATIONS.isdisjoint(words(text))


def _sentence(message: str, start: int, end: int) -> str:
    """Return the sentence, or the sentences, in which a span lies."""
    before = [match.end() for match in _SENTENCE_END.finditer(message, 0, start)]
    last = max(start, end - 1)
    after = _SENTENCE_END.search(message, last)
    return message[before[-1] if before else 0 : after.end() if after else len(message)]


def _names(text: str, other: str) -> list[str]:
    """Return the names and numbers of a text that another text shares, in order: only the order tells who did what."""
    shared = set(words(text)).intersection(words(other))
    capital = {word for raw in (*text.split(), *other.split()) if raw[:1].isupper() for word in words(raw)}
    names = [word for word in words(text) if word in shared and (word in capital or word.isdigit())]
    return [word for word in dict.fromkeys(names) if word not in STOP_WORDS]


def _denies(sentence: str, fact: str) -> bool:
    """Say whether a negation of the sentence concerns the fact: "never push" does, "5433, not 5432" does not."""
    stated = set(terms(fact))
    before = False
    for clause in _CLAUSE_END.split(sentence):
        said = words(clause)
        for at, word in enumerate(said):
            if word in _NEGATIONS:
                denied = [w for w in said[at + 1 :] if w not in STOP_WORDS]
                if stated.intersection(terms(" ".join(denied))) if denied else before or at > 0:
                    return True
        before = before or bool(said)
    return False
