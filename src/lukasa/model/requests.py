"""Requests to memory in plain English: "remember that …", "forget that …", with their tier, lifetime and importance.

Pure rules. A responder without a language model uses them, and the end of a session uses them to find requests on which
nobody acted.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.values import Lifetime

LOW, HIGH = 0.1, 0.9


class Request(Struct, frozen=True):
    """Something to remember, in the person's own words. `reach` names a tier, or is empty if they named none."""

    content: str
    reach: str = ""
    lifetime: Lifetime | None = None
    private: bool = False
    importance: float | None = None
    tracking: bool = False


_POLITE = (
    r"(?:(?:please|kindly|hey|ok|okay|also|and|can you|could you|would you|i want you to|i['’]d like you to)[\s,]+)*"
)
_VERB = re.compile(
    rf"^\s*(?P<polite>{_POLITE})(?P<verb>remember|take note|make a note|note|keep in mind|keep track|do not forget"
    r"|don['’]t forget|remind me|bear in mind)\b(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ASKING = re.compile(
    r"^\s*(?:of\s+)?(?:what|who|whom|whose|where|when|why|how|which|if|whether|about)\b", re.IGNORECASE
)
_FORGET = re.compile(
    rf"^\s*{_POLITE}(?:forget|(?:delete|erase|remove)\s+(?:the\s+|my\s+)?(?:memory|note|fact))\b"
    r"(?:\s+(?:about|that|of|the fact that|what i (?:said|told you) about|everything about))?\s*[:,]?(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)

# Each pattern is about one property of a request. The patterns in _LOOSE may also be at the end without a mark before
# them: at the end of a sentence "at the account level" is about the note, while "important" may be about the world.
_REACH = {
    "account": r"(?:at|on|in|for) (?:the |my )?account(?:[- ](?:level|tier|scope|wide))?(?: only)?|account[- ]wide"
    r"|(?:for|in|across) (?:all|every)(?: of)?(?: my)? (?:workspaces?|projects?)",
    "workspace": r"(?:at|on|in) the workspace (?:level|tier|scope)(?: only)?|workspace (?:scope )?only"
    r"|only (?:for|in) this workspace|(?:for|in) this workspace only",
    "channel": r"(?:for|in) this (?:channel|topic)(?: only)?",
    "conversation": r"(?:just |only )?(?:for|in|during) this (?:conversation|session|chat)(?: only)?",
}
_LIFE = {
    Lifetime.SHORT_TERM: r"short[- ]term|for a (?:few|couple of) (?:days|weeks)",
    Lifetime.LONG_TERM: r"permanently|forever|for good|long[- ]term",
}
_PRIVATE = (
    r"privately|(?:only |just )?for (?:you|yourself|this agent)(?: only| alone)?|as (?:your|a) (?:own |private )+note"
)
_IT_IS = r"(?:this is |it is |it['’]s )?"
_WEIGHT = {
    LOW: rf"(?:with |at |as )?low[- ](?:priority|importance)|{_IT_IS}(?:not important|unimportant|trivial)",
    HIGH: rf"(?:with |at |as )?high[- ](?:priority|importance)|{_IT_IS}(?:very |really )?important",
}
_LOOSE = "|".join(_REACH.values())
_STRICT = "|".join([*_LIFE.values(), _PRIVATE, *_WEIGHT.values()])
_MARK = r"[\s,;:—–(-]"
# Between the verb and the statement: a phrase about the note, or a word that stands for the statement ("this: …").
_ABOUT = re.compile(
    rf"[\s,(]*(?:(?P<about>{_LOOSE}|{_STRICT})\b\)?"
    rf"|(?:of )?(?:this|that|it)(?=\s*(?:[,:;—–]|-\s|$)|\s+(?:down\b|{_LOOSE}|{_STRICT}))|down(?=\s*[,:;—–]))",
    re.IGNORECASE,
)
_LINK = re.compile(r"\s*(?:[,:;—–]|-(?=\s))[\s,:;—–]*(?:-\s+)?|\s+that\b|that\b|\s*$", re.IGNORECASE)
_OF = re.compile(r"\s*of\b", re.IGNORECASE)
_DOWN = re.compile(r"\s*down\b", re.IGNORECASE)
_SAYING = r"(?:and\s+)?(?:please\s+)?(?:(?:note|keep|store|save|remember|put)\s+(?:this|it|that)\s+)"
_IN_AN_ACCOUNT = r"(?!\S+ (?:the |my )?account(?![- ](?:level|tier|scope|wide)))"  # "500 euros in my account"
MOST_TAIL = 300  # characters at the end that may hold a property; the pattern is not linear in white space
_TAIL = re.compile(
    rf"(?:\s*[,;:—–(-]\s*{_SAYING}?(?P<marked>{_LOOSE}|{_STRICT})|\s+{_SAYING}?(?P<plain>{_IN_AN_ACCOUNT}{_LOOSE}))\)?\s*[.!]*\s*$",
    re.IGNORECASE,
)


def request(text: str) -> Request | None:
    """Parse a request to remember; None if the text is none. Empty content means that the person did not say what."""
    found = _VERB.match(text)
    if found is None:
        return None
    verb, rest = found["verb"].lower(), found["rest"].strip()
    if rest.endswith("?"):
        if not rest.lower().startswith("that"):
            return None
        rest = rest[:-1] if "you" in found["polite"].lower() else rest
    if verb in ("remember", "remind me") and _ASKING.match(rest):
        return None
    if verb == "note" and not re.match(rf"\s*(?:that\b|this\b|down\b|[:—–-]|(?:{_LOOSE}|{_STRICT})\b)", rest, re.I):
        return None
    asked = Request("", reach="conversation" if verb == "keep track" else "", tracking=verb == "keep track")
    asked, rest = _from_head(asked, rest, verb)
    asked, rest = _from_tail(asked, rest)
    if asked.reach == "conversation":
        asked = replace(asked, lifetime=Lifetime.CONVERSATION)
    return replace(asked, content=sentence(rest))


def forgetting(text: str) -> str | None:
    """The content that a person wants forgotten; None if the text does not ask for that."""
    found = _FORGET.match(text)
    return sentence(found["rest"]) if found else None


_BEFORE = re.compile(r"^(?:[,;:—–\s]|-\s)+")


def sentence(text: str) -> str:
    """A statement without the marks around it, but with the sign of a number. Its words and capitals stay."""
    return _BEFORE.sub("", text.strip()).rstrip(" ,;:")


def _from_head(asked: Request, rest: str, verb: str) -> tuple[Request, str]:
    """Read the phrases about the note before the statement. Cut them only if a mark or "that" ends them.

    Later words are part of the statement: "Note: this is where I work" keeps "this".
    """
    at = 0
    while (found := _ABOUT.match(rest, at)) is not None and found.end() > at:
        if found["about"]:
            asked = _with(asked, found["about"])
        at = found.end()
    linked = _LINK.match(rest, at)
    if linked is None and not at:
        own = _OF if verb in ("take note", "make a note", "keep track") else _DOWN if verb == "note" else None
        linked = own.match(rest) if own is not None else None
    return asked, rest[linked.end() :] if linked is not None else rest


def _from_tail(asked: Request, rest: str) -> tuple[Request, str]:
    while (found := _TAIL.search(rest, max(0, len(rest) - MOST_TAIL))) is not None and found.start() > 0:
        asked = _with(asked, found["marked"] or found["plain"])
        rest = rest[: found.start()]
    return asked, rest


def _with(asked: Request, said: str) -> Request:
    for reach, pattern in _REACH.items():
        if re.fullmatch(pattern, said, re.IGNORECASE):
            return replace(asked, reach=reach)
    for lifetime, pattern in _LIFE.items():
        if re.fullmatch(pattern, said, re.IGNORECASE):
            return replace(asked, lifetime=lifetime)
    for weight, pattern in _WEIGHT.items():
        if re.fullmatch(pattern, said, re.IGNORECASE):
            return replace(asked, importance=weight)
    return replace(asked, private=True)
