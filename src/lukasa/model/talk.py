"""Lines of talks, as their wording tells them: whether somebody speaks, and who it is."""

from __future__ import annotations

from lukasa.model.late import pattern
from lukasa.model.text import STOP_WORDS, words

ONESELF = frozenset("i im ive my mine me myself".split())
OTHERS = frozenset("you your yours yourself we our ours".split())  # and "us", where it can be no country
_SPEAKING = ONESELF | OTHERS | frozenset("youre youve lets".split())
_BEGINNING = 1000  # characters of a text that are looked at
_ENDS = frozenset("?!？！")  # though one within a word ends nothing
_ASKING = pattern(r"""[?!](?=["'”’)\]]*(?:\s|$))|[？！]""")

_LABEL = 80  # characters within which who speaks is named
_COLONS = frozenset(":：")
# "Ann Lee: so I went", with a time before it or without: "[8 May 2023] Ann:", "8/5/23, 13:56 - Ann:", "**Ann:**".
_NAMED = pattern(
    r"\s*(?:[\[(][^\])\n]{1,60}[\])]|\d[\d\-/:.,TZ ]{2,30})?[\s*_–-]*"
    r"(?P<name>[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2})[*_]*\s?(?::[*_]*\s|：)[*_]*\s*\S"
)
MACHINES = frozenset("assistant ai bot agent model chatgpt claude gpt gemini copilot".split())
_ROLES = {"me": "user", "human": "user", "ai": "assistant"} | {role: role for role in ("user", "assistant", "system")}
# What stands before a colon and is nobody.
_HEADINGS = frozenset(
    """note notes nb ps fyi todo todos task tasks reminder warning caution alert urgent important attention tip hint
    info update status fact facts question questions answer answers q summary title subject topic context
    background goal goals idea ideas plan plans decision decisions rule rules result results output input error
    errors example examples step option reason problem issue fix bug date time day today tomorrow yesterday
    tonight morning evening re fwd cc url link source quote lesson preference preferences feedback request
    instruction instructions prompt message comment model tool name email address phone location
    monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december""".split()
)
_NOBODY = (_HEADINGS | STOP_WORDS) - {"will"}


def speaks(text: str) -> bool:
    """Whether a text is worded as one speaks to another: it says I, we or you, asks, or exclaims. Of a long one, the
    beginning tells."""
    beginning = text[:_BEGINNING]
    if not _SPEAKING.isdisjoint(words(beginning)):
        return True
    return not _ENDS.isdisjoint(beginning) and _ASKING.search(beginning) is not None


def speaker(text: str) -> str | None:
    """Who says a line of a talk, where it begins with that, as logs of chats do: up to three words written as a name,
    or the role of a message; None for a heading. Whether it is a line of a talk is for the caller to know."""
    beginning = text[:_LABEL]
    found = None if _COLONS.isdisjoint(beginning) else _NAMED.match(beginning)
    if found is None:
        return None
    name: str = found["name"]
    if (role := _ROLES.get(name.lower())) is not None:
        return role
    written_as_a_name = name in MACHINES or not any(part[0].islower() for part in name.split())
    return name if written_as_a_name and _NOBODY.isdisjoint(words(name)) else None
