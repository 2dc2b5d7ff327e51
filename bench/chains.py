"""Questions over two facts: chains that are built over the facts of FactConsolidation, which asks for one at a time.

The questions of the set name one fact each, so its two-hop questions are not among them. A chain takes two of its facts
of which the second is about what the first one says, both as they were told last: "The author of Misery is Stephen
King" and "Stephen King was born in the city of Portland" give "In which city was the author of Misery born?". The
evidence is the second fact; what was told before about the same thing is stale.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict

from bench.dataset import Dataset, Turn

SEED = 29
# How a fact is worded, and how the thing it leads to is called in a question.
FIRST = (
    (r"The author of (.+) is (.+)\.", "the author of {}"),
    (r"(.+) is married to (.+)\.", "the spouse of {}"),
    (r"(.+) was founded by (.+)\.", "the founder of {}"),
    (r"(.+) was performed by (.+)\.", "the performer of {}"),
    (r"(.+) was created by (.+)\.", "the creator of {}"),
    (r"The chairperson of (.+) is (.+)\.", "the chairperson of {}"),
    (r"The chief executive officer of (.+) is (.+)\.", "the chief executive officer of {}"),
    (r"The director of (.+) is (.+)\.", "the director of {}"),
    (r"The head coach of (.+) is (.+)\.", "the head coach of {}"),
    (r"(.+) was created in the country of (.+)\.", "the country where {} was created"),
    (r"(.+) is employed by (.+)\.", "the employer of {}"),
)
SECOND = (
    (r"(.+) is a citizen of (.+)\.", "What is the country of citizenship of {}?"),
    (r"(.+) is affiliated with the religion of (.+)\.", "Which religion is {} affiliated with?"),
    (r"(.+) was born in the city of (.+)\.", "Which city was {} born in?"),
    (r"(.+) died in the city of (.+)\.", "Which city did {} die in?"),
    (r"(.+) speaks the language of (.+)\.", "What language does {} speak?"),
    (r"(.+) is located in the continent of (.+)\.", "Which continent is {} located in?"),
    (r"The capital of (.+) is (.+)\.", "What is the capital of {}?"),
    (r"(.+) is associated with the sport of (.+)\.", "Which sport is {} associated with?"),
    (r"The headquarters of (.+) is located in the city of (.+)\.", "Which city are the headquarters of {} in?"),
    (r"(.+) is married to (.+)\.", "Who is {} married to?"),
)


def chains(data: Dataset, most: int = 60) -> Dataset:
    """The same facts with questions over two of them, up to so many in each scope."""
    queries: list[Turn] = []
    for scope in data.scopes:
        turns = data.turns(scope)
        first, second = _by_subject(turns, FIRST), _by_subject(turns, SECOND)
        made = [
            (words, subject, ask, told)
            for (words, subject), facts in first.items()
            for (ask, about), told in _of(second, facts[-1][1])
            if about != subject and (words, ask) != ("the spouse of {}", "Who is {} married to?")
        ]
        chosen = random.Random(f"{SEED} {scope}").sample(made, min(most, len(made)))
        for number, (words, subject, ask, told) in enumerate(chosen):
            queries.append(
                {
                    "id": f"{scope}/c{number}",
                    "scope": scope,
                    "text": ask.format(words.format(subject)),
                    "evidence": [told[-1][0]],
                    "category": "two hops",
                    "stale": [id for id, value in told[:-1] if value != told[-1][1]],
                }
            )
    return Dataset("chains", data.corpus, tuple(queries))


_Facts = dict[tuple[str, str], list[tuple[str, str]]]  # by wording and subject: ids and values, the last one last


def _by_subject(turns: list[Turn], forms: tuple[tuple[str, str], ...]) -> _Facts:
    found: _Facts = defaultdict(list)
    for turn in turns:
        for pattern, words in forms:
            if told := re.fullmatch(pattern, turn["text"]):
                found[words, told[1]].append((turn["id"], told[2]))
                break
    return found


def _of(facts: _Facts, subject: str) -> list[tuple[tuple[str, str], list[tuple[str, str]]]]:
    """The facts about one subject."""
    return [(key, told) for key, told in facts.items() if key[1] == subject]
