"""How near a page is to what is remembered, and to a word of context. Pure, and explained by the words it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lukasa.model.discovery import Relevance
from lukasa.model.text import STOP_WORDS, terms, words

MAIN = 24  # words that stand for a page
_READ = 60_000  # characters of a page that are counted
_TITLE = 3  # how often a word of the title counts
_SHORTEST = 3
_CONTEXT = 0.5  # the part of the score that the word of context has, if there is one


def main_words(title: str, text: str) -> tuple[str, ...]:
    """Return the words that a page uses most, those of its title first among equals; of forms of a word, one."""
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for part, worth in ((title, _TITLE), (text[:_READ], 1)):
        for word in words(part):
            if word in STOP_WORDS or len(word) < _SHORTEST or word.isdigit():
                continue
            for stem in terms(word):
                counts[stem] += worth
                spelled.setdefault(stem, word)
    best = sorted(counts, key=lambda stem: -counts[stem])
    return tuple(spelled[stem] for stem in best[:MAIN])


def relevance(title: str, text: str, context: str, remembered: Iterable[tuple[str, str]]) -> Relevance:
    """Return the relevance of a page; `remembered` are ids and texts of the entries that its main words find.

    The score is the share of the page's main words that these entries have. With a word of context, that is half of the
    score, and the share of the context's words that the page has is the other half.
    """
    main = main_words(title, text)
    known: dict[str, frozenset[str]] = {id: frozenset(terms(body)) for id, body in remembered}
    found = [word for word in main if any(known_terms.intersection(terms(word)) for known_terms in known.values())]
    among = frozenset(stem for word in found for stem in terms(word))
    memory = len(found) / len(main) if main else 0.0
    asked = _content(context)
    share = None
    if asked:
        here = frozenset(terms(f"{title}\n{text[:_READ]}"))
        share = sum(bool(here.intersection(terms(word))) for word in asked) / len(asked)
    score = memory if share is None else _CONTEXT * share + (1 - _CONTEXT) * memory
    entries = tuple(id for id, its in known.items() if its.intersection(among))
    return Relevance(
        round(score, 2),
        None if share is None else round(share, 2),
        round(memory, 2),
        tuple(found),
        entries,
    )


def _content(context: str) -> Sequence[str]:
    return [word for word in dict.fromkeys(words(context)) if word not in STOP_WORDS]
