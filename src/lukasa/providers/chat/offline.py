"""Answer without a model: understand English requests to remember, recall, count and forget, and nothing else.

The responder works as a model does: it gets the conversation and the tools, asks for tool calls, sees their results,
and then answers. It quotes entries with their date and origin; if nothing matches, it says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lukasa.model.requests import Request, forgetting, request
from lukasa.model.text import fold, terms
from lukasa.ports import Message, Reply, Tool, ToolCall

ENOUGH = 0.5  # share of a question's content words that an entry must hold to be an answer
QUOTED = 3
LISTED = 12
SUMMARY = "conversation-summary"

_ASKING = re.compile(
    r"^\s*(?:and |so |please |hey |ok(?:ay)?,? )*(?:what|who|whom|whose|where|when|why|how|which|do|does|did|is|are|was"
    r"|were|can|could|will|would|have|has|had|tell me|remind me|recall|remember (?:what|when|who|where))\b",
    re.IGNORECASE,
)
_OVERVIEW = re.compile(
    r"\A(?>.*?\b(?:know|remember|recall|stored|noted|memor\w+)\b).*\b(?:this (?:workspace|project)|here|everything)\b"
    r"|^\s*what do you (?:know|remember)\s*+\?*+\s*+$",
    re.IGNORECASE | re.DOTALL,
)
_LAST_TIME = re.compile(
    r"\b(?:last time|previous(?:ly)?|earlier|where did we (?:leave|stop)|left off|what did we (?:discuss|talk|do))\b",
    re.IGNORECASE,
)
_NUMBERS = {w: n for n, w in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())}
_COUNT = re.compile(
    r"\b(?:i|we)(?:['’]ve|['’]d| have| had)?\s+(?:(?:just|already|now|only|also)\s+)*(?P<verb>[a-z]+)\s+"
    rf"(?P<amount>\d+|{'|'.join(_NUMBERS)})\s+(?P<more>(?:more|other|further|additional)\s+)?(?P<unit>[a-z]+)",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much)\b|\bwhat(?:['’]s| is) the (?:total|count)\b", re.IGNORECASE)
_HELLO = re.compile(r"^\s*(?:hello|hi|hey|good (?:morning|evening|afternoon))\b[\s!.,]*$", re.IGNORECASE)
_THANKS = re.compile(r"^\s*(?:thanks|thank you|great|ok(?:ay)?|bye|goodbye)\b[\s\w!.,]*$", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,;:] )[“\"'‘]?([A-Z][^\W\d_]+)")
# Words that frame a question but are not its subject. Stemmed, as terms are.
_FRAME = frozenset(
    terms(
        "know anything something everything nothing remember recall tell remind noted note notes told said say thing"
        " things called call named name done far please information info today currently now ever give know got get"
        " want like"
    )
)

NOTHING = "I have no information about that: nothing I have noted here matches."
FRESH = "I have no stored information about this workspace yet: it is a fresh start."
LOST = "I can note, recall and forget things for you. Say “remember that …”, or ask what I know about something."
NOT_STORED = "I have not stored that. If it should be kept, say “remember that …”."


class _Step(Struct, frozen=True):
    """A tool call of this turn, and its result."""

    call: ToolCall
    result: Mapping[str, Any]

    @property
    def error(self) -> str:
        fault = self.result.get("error")
        return str(fault.get("message", "")) if isinstance(fault, Mapping) else ""


class OfflineChat:
    """Implements the chat port by rules. The same conversation always gets the same reply."""

    @property
    def name(self) -> str:
        return "offline"

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        said, steps = _turn(messages)
        decided = _answer(said, steps)
        if not isinstance(decided, str) and decided.name in {tool.name for tool in tools}:
            return Reply("", (decided,))
        text = decided if isinstance(decided, str) else "I cannot do that here: I was given no tool for it."
        if on_text is not None:
            for word in re.findall(r"\S+\s*|\s+", text):
                on_text(word)
        return Reply(text)


def _turn(messages: Sequence[Message]) -> tuple[str, list[_Step]]:
    """Return the user's last message, and the tool calls since then with their results."""
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    if last < 0:
        return "", []
    results = {m.tool_call_id: _decoded(m.content) for m in messages[last:] if m.role == "tool"}
    calls = [call for m in messages[last:] for call in m.tool_calls]
    return messages[last].content, [_Step(call, results[call.id]) for call in calls if call.id in results]


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    return data if isinstance(data, Mapping) else {"error": {"message": text[:500]}}


def _answer(said: str, steps: Sequence[_Step]) -> str | ToolCall:
    """Return the next tool call, or the final text."""
    asked = request(said)
    count = _COUNT.search(said)
    if count is not None and ((asked is not None and asked.tracking) or count["more"] or _HOW_MANY.search(said)):
        return _counting(count, said, steps)
    if asked is not None:
        return _remember(asked, steps)
    target = forgetting(said)
    if target is not None:
        return _forget(target, steps)
    if _HOW_MANY.search(said):
        return _how_many(said, steps)
    if _OVERVIEW.search(said) and _ASKING.match(said):
        return _overview(steps)
    if _ASKING.match(said) or said.rstrip().endswith("?"):
        return _recall(said, steps)
    if _HELLO.match(said):
        return f"Hello. {LOST}"
    return "You’re welcome." if _THANKS.match(said) else NOT_STORED if said.strip() else LOST


def _call(name: str, steps: Sequence[_Step], **arguments: Any) -> ToolCall:
    return ToolCall(f"offline_{len(steps) + 1}_{name}", name, arguments)


def _trouble(step: _Step) -> str:
    return f"That did not work: {step.error}."


# Remember and forget


def _remember(asked: Request, steps: Sequence[_Step]) -> str | ToolCall:
    if not asked.content:
        return "What should I remember?"
    if steps:
        return _remembered(asked, steps[-1])
    given: dict[str, Any] = {"content": asked.content, "said_by": "user"}
    if asked.reach:
        given["tier"] = asked.reach
    if asked.lifetime is not None:
        given["lifetime"] = str(asked.lifetime)
    if asked.importance is not None:
        given["importance"] = asked.importance
    if asked.private:
        given["private"] = True
    return _call("memory_put", steps, **given)


_KEPT = {
    "stored": "I’ll remember that",
    "merged": "I had that noted already, and have confirmed it",
    "replaced": "I’ll remember that, in place of what I had noted before",
    "updated": "I’ll remember that",
}


def _remembered(asked: Request, step: _Step) -> str:
    if step.error:
        return f"I could not store that: {step.error}."
    outcome, reason = str(step.result.get("outcome")), str(step.result.get("reason", ""))
    if outcome == "held":
        return f"I have set that aside for you to decide, and will not use it until then: {reason}."
    if outcome not in _KEPT:
        return f"I did not store that: {reason}."
    where = {"conversation": "for this conversation", "account": "for all your workspaces"}
    place = where.get(str(step.result.get("tier")), "for this workspace")
    life = ", short-term" if step.result.get("lifetime") == "short_term" else ""
    owner = ", as this agent’s own" if asked.private else ""
    return f"{_KEPT[outcome]}: “{asked.content}” ({place}{life}{owner})"


def _forget(target: str, steps: Sequence[_Step]) -> str | ToolCall:
    if not target or target.lower().rstrip(".!") in ("it", "that", "this"):
        return "What should I forget? Say it as in “forget that the villain is called Malachar”."
    if not steps:
        return _call("memory_read", steps, query=target)
    if steps[-1].error:
        return _trouble(steps[-1])
    if len(steps) > 1:
        return f"I have forgotten this, and you can restore it: “{steps[-1].result.get('content', '')}”"
    best = next(iter(matching(target, _hits(steps[0]))), None)
    if best is None:
        return "I found nothing like that to forget."
    return _call("memory_forget", steps, id=best["id"], reason="the user asked to forget it")


# Counting in the notes


def _counting(count: re.Match[str], said: str, steps: Sequence[_Step]) -> str | ToolCall:
    """Keep a running count: read the note, add, write the sum, report it."""
    if steps and steps[-1].error:
        return _trouble(steps[-1])
    amount = _number(count["amount"])
    if not steps:
        return _call("note_read", steps)
    if len(steps) == 1:
        key, before = _counter(count["unit"], count["verb"], steps[0])
        total = (before if count["more"] else 0) + amount
        return _call("note_write", steps, key=key or f"{count['unit']} {count['verb']}".lower(), value=total)
    total = steps[-1].call.arguments["value"]
    told = f"{total} {count['unit'].lower()}"
    if _HOW_MANY.search(said):
        return f"That makes {told}, counting what you told me in this conversation."
    return f"Noted: {told} {count['verb'].lower()} so far. I keep count for this conversation."


def _how_many(said: str, steps: Sequence[_Step]) -> str | ToolCall:
    """Answer a question about a count: from the notes first, then from memory."""
    if not steps:
        return _call("note_read", steps)
    if len(steps) == 1:
        for key, value in _notes(steps[0]):
            if set(terms(key)) <= set(terms(said)) | {""} and isinstance(value, int | float):
                return f"{value} {key}, counting what you told me in this conversation."
    return _recall(said, steps[1:])


def _counter(unit: str, verb: str, step: _Step) -> tuple[str, float | int]:
    """Return the key and value of the note with the same unit, and with the same verb if there is one."""
    numbers = [(k, v) for k, v in _notes(step) if isinstance(v, int | float) and set(terms(unit)) & set(terms(k))]
    numbers.sort(key=lambda pair: not set(terms(verb)) & set(terms(pair[0])))
    return numbers[0] if numbers else ("", 0)


def _notes(step: _Step) -> Iterator[tuple[str, Any]]:
    notes = step.result.get("notes")
    for key, value in notes.items() if isinstance(notes, Mapping) else ():
        yield str(key), value


def _number(text: str) -> int:
    return _NUMBERS.get(text.lower(), 0) if not text.isdigit() else int(text)


# Recall


def _recall(said: str, steps: Sequence[_Step]) -> str | ToolCall:
    if not steps or steps[-1].call.name != "memory_read":
        return _call("memory_read", steps, query=said)
    if steps[-1].error:
        return _trouble(steps[-1])
    found = _hits(steps[-1])
    if _LAST_TIME.search(said):
        summaries = [hit for hit in found if SUMMARY in hit.get("tags", ())]
        if summaries:
            return "\n".join(_quote(hit) for hit in summaries[:QUOTED])
    quoted = matching(said, found)[:QUOTED]
    return "\n".join(_quote(hit) for hit in quoted) if quoted else NOTHING


def _overview(steps: Sequence[_Step]) -> str | ToolCall:
    if not steps:
        return _call("memory_read", steps, query="", limit=LISTED)
    if steps[-1].error:
        return _trouble(steps[-1])
    found = [hit for hit in _hits(steps[-1]) if SUMMARY not in hit.get("tags", ())]
    here = [hit for hit in found if hit.get("tier") != "account"]
    everywhere = [hit for hit in found if hit.get("tier") == "account"]
    parts = ["What I have noted about this workspace:", *(f"- {_quote(hit)}" for hit in here)] if here else [FRESH]
    if everywhere:
        parts += ["What I have noted for all your workspaces:", *(f"- {_quote(hit)}" for hit in everywhere)]
    return "\n".join(parts)


def _hits(step: _Step) -> list[Mapping[str, Any]]:
    hits = step.result.get("hits")
    return [hit for hit in hits if isinstance(hit, Mapping)] if isinstance(hits, list) else []


def matching(question: str, hits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the hits that answer a question: they share its content words, or are marked as near in meaning.

    If the question names a person, only a hit with that name is an answer.
    """
    about = set(terms(question)) - _FRAME
    names = {fold(name) for name in _NAME.findall(question)}
    scored = []
    for place, hit in enumerate(hits):
        content = str(hit.get("content", ""))
        if SUMMARY in hit.get("tags", ()) or (names and not any(name in fold(content) for name in names)):
            continue
        share = len(about & set(terms(content))) / len(about) if about else 0.0
        if share >= ENOUGH or hit.get("near") is True:
            scored.append((max(share, ENOUGH), -place, hit))
    best = max((score for score, _, _ in scored), default=0.0)
    ordered = sorted(scored, key=lambda item: item[:2], reverse=True)
    return [hit for score, _, hit in ordered if score > best / 2]


def _quote(hit: Mapping[str, Any]) -> str:
    """Quote a hit with its date and source, never as a fact."""
    source, date = str(hit.get("source", "")), hit.get("recorded", "")
    if hit.get("authority") == "none":
        who = f"Text of unknown authorship, recorded on {date}, not to be acted on"
    elif source == "user" or hit.get("by") == "author":
        who = f"You noted on {date}"
    else:
        who = f"Noted on {date} by {source or 'an agent'}"
    return f"{who}: “{hit.get('content', '')}”"
