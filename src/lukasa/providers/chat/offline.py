"""Answer without a model: understand requests to remember, recall, look up, count and forget, and nothing else.

The responder works as a model does: it gets the conversation and the tools, asks for tool calls, sees their results,
and then answers. It quotes entries with their date and origin; if nothing matches, it says so. It understands English
and German words; with an embedder also wordings that are near to labelled examples (`lukasa.model.intents`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model import intents, wordings
from lukasa.model.echo import unhedged
from lukasa.model.requests import Request
from lukasa.model.text import STOP_WORDS, fold, terms, words
from lukasa.ports import Embedder, Message, Reply, Tool, ToolCall
from lukasa.providers.chat.corrections import corrected
from lukasa.providers.chat.counting import Count, asks_count, reported_count
from lukasa.providers.chat.looking_up import NO_DOCUMENTS, Lookup, lookup, passages, quoted
from lukasa.providers.chat.looking_up import count as document_count

ENOUGH = 0.5  # share of a question's content words that an entry must hold to be an answer
QUOTED = 3
LISTED = 12
RECALLED = 6  # turns in which a correction looks for what it corrects
LOOKED_UP = 10  # passages that a look into documents brings
MATCHED = 15  # entries that a request to forget looks at, the most that one read returns
SUMMARY = "conversation-summary"

_LAST_TIME = re.compile(
    r"\b(?:last time|previous(?:ly)?|earlier|where did we (?:leave|stop)|left off|what did we (?:discuss|talk|do)"
    r"|letztes mal|beim letzten|zuletzt)\b",
    re.IGNORECASE,
)
_HELLO = re.compile(
    r"^\s*(?:hello|hi|hey|good (?:morning|evening|afternoon)|hallo|guten \w+)\b[\s!.,]*$", re.IGNORECASE
)
_THANKS = re.compile(r"^\s*(?:thanks|thank you|great|ok(?:ay)?|bye|goodbye|danke|tschüss)\b[\s\w!.,]*$", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,;:] )[“\"'‘]?([A-Z][^\W\d_]+)")
# Words that frame a question but are not its subject. Stemmed, as terms are.
_FRAME = frozenset(
    terms(
        """know anything something everything nothing remember recall tell remind noted note notes told said say
        thing things called call named name done far please information info today currently now ever give got
        get want like happen idea was wer wen wem wo wann warum wie welche welcher welches welchen weisst weiß
        du dich dir ich mich mir mein meine meinen meiner meinem dein der die das den dem des ein eine einen
        einem über von zu zum zur mit auf in im an am für und oder ist sind war waren hat habe hast haben kennst
        etwas alles erinnerst erinnern noch bitte mal es gibt heißt sag sage nenne bisher schon wollte wollten"""
    )
)
_GERMAN = frozenset(
    "was wer wo wann wie welche weisst du ich mein meine meinen der die das ist uber kennst hast".split()
)
# Words of a question about everything that is noted, beside those of the frame.
_WHOLE = frozenset(
    terms(
        """knowledge much fill workspace workspaces project projects place memory memories stored store kept keep
        saved save recorded record records file overview summary summarise summarize list show sum up rundown
        yet already here collected everything all whole contain holding hold learned learn facts fact entries
        entry full bring date stand so arbeitsbereich projekt gedächtnis gespeichert notiert notizen gemerkt
        überblick zusammenfassung zeig zeige liste dieser diesen diesem dieses hier bereits zusammen fasse
        bislang"""
    )
)
_MEMORY = frozenset(
    terms(
        """knowledge know remember recall noted note notes stored store kept keep saved memory memories recorded
        record records got have told overview summary summarise summarize list learned collected workspace
        project entries facts file weisst erinnerst notiert gespeichert gemerkt gedächtnis notizen
        arbeitsbereich projekt überblick liste kennst"""
    )
) | {"have"}

_KNOW = frozenset("know remember recall weisst".split())
_WHO = frozenset("who whom whose where when why wer wo wann warum".split())

NOTHING = "I don't know: nothing I have noted here says anything about that."
FRESH = "I have no stored information about this workspace yet: it is a fresh start."
LOST = "I can note, recall and forget things for you. Say “remember that …”, or ask what I know about something."
HEARD = (
    "When this conversation ends, I look through it and keep the lasting facts that I recognise. To make sure that I"
    " keep this one, say “please remember that”."
)
SHALL_I = "Shall I forget"


class _Step(Struct, frozen=True):
    """A tool call of this turn, and its result."""

    call: ToolCall
    result: Mapping[str, Any]

    @property
    def error(self) -> str:
        fault = self.result.get("error")
        return str(fault.get("message", "")) if isinstance(fault, Mapping) else ""


class _Turn(Struct, frozen=True):
    """A message of the user, the tool calls and the reply that followed, and the turn before."""

    said: str
    steps: tuple[_Step, ...] = ()
    reply: str = ""
    before: _Turn | None = None


class OfflineChat:
    """Implements the chat port by rules. The same conversation always gets the same reply."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return "offline"

    def with_embedder(self, embedder: Embedder | None) -> OfflineChat:
        """Return a responder that also compares wordings by this embedder."""
        return OfflineChat(embedder)

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        decided = _answer(_last_turn(messages), self._embedder)
        calls = () if isinstance(decided, str) else decided if isinstance(decided, tuple) else (decided,)
        if calls and {call.name for call in calls} <= {tool.name for tool in tools}:
            return Reply("", calls)
        text = decided if isinstance(decided, str) else "I cannot do that here: I was given no tool for it."
        if on_text is not None:
            for word in re.findall(r"\S+\s*|\s+", text):
                on_text(word)
        return Reply(text)


def _last_turn(messages: Sequence[Message]) -> _Turn:
    """Return the last turn of a conversation, with the turns before it."""
    begins = [i for i, message in enumerate(messages) if message.role == "user"]
    found: _Turn | None = None
    for start, end in pairwise([*begins[-RECALLED:], len(messages)]):
        turn = messages[start:end]
        results = {m.tool_call_id: _decoded(m.content) for m in turn if m.role == "tool"}
        calls = [call for m in turn for call in m.tool_calls]
        steps = tuple(_Step(call, results[call.id]) for call in calls if call.id in results)
        spoken = next((m.content for m in reversed(turn) if m.role == "assistant" and m.content), "")
        found = _Turn(turn[0].content, steps, spoken, found)
    return found or _Turn("")


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    return data if isinstance(data, Mapping) else {"error": {"message": text[:500]}}


def _answer(turn: _Turn, embedder: Embedder | None) -> str | ToolCall | tuple[ToolCall, ...]:
    """Return the next tool call, or the final text."""
    said, steps = turn.said, turn.steps
    chosen = _chosen(turn)
    if chosen is not None:
        return _forget_chosen(chosen, steps)
    asked = lookup(said)
    if asked is not None:
        return _look_up(_meant(asked, turn.before), said, steps)
    intent = intents.understand(said, embedder)
    count = reported_count(said, intent, embedder) if intent.forget is None and not intent.declined else None
    if count is not None:
        counted = _counting(count, steps)
        if counted is not None:
            return counted
    if intent.asked is not None:
        return _remember(_filled(intent.asked, turn.before, embedder), steps)
    if intent.declined:
        return "I will not store that."
    if intent.forget is not None:
        return _forget(intent.forget, steps)
    if intent.question:
        return _question(said, steps, embedder)
    correction = _correction(turn, embedder)
    if correction is not None:
        return _correct(*correction, steps)
    if _HELLO.match(said):
        return f"Hello. {LOST}"
    return "You’re welcome." if _THANKS.match(said) else HEARD if said.strip() else LOST


def _question(said: str, steps: Sequence[_Step], embedder: Embedder | None) -> str | ToolCall:
    kind = _kind(said, embedder)
    if kind == "count":
        return _how_many(said, steps)
    return _overview(steps) if kind == "overview" else _recall(said, steps, last_time=kind == "last_time")


def _kind(said: str, embedder: Embedder | None) -> str:
    """Return what a question is about: a count, everything that is noted, the last conversation, or a topic."""
    if _LAST_TIME.search(said):
        return "last_time"
    topic, heard = _topic(said), words(said)
    if asks_count(said) and _KNOW.isdisjoint(heard):
        return "count"
    if not topic - _WHOLE and not _MEMORY.isdisjoint([*terms(said), *heard]) and _WHO.isdisjoint(heard[:1]):
        return "overview"
    if _NAME.search(said) or any(term.isdigit() for term in topic):
        return "topic"
    return wordings.label("questions", said, embedder, "topic")


def _topic(said: str) -> set[str]:
    return {term for term in terms(said) if term not in STOP_WORDS} - _FRAME


def _filled(asked: Request, before: _Turn | None, embedder: Embedder | None) -> Request:
    """Take the statement from the message before, if this one says only "please remember that"."""
    if asked.content or before is None or intents.understand(before.said, embedder) != intents.Intent():
        return asked
    return replace(asked, content=before.said.strip())


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


_SECRET = "\nIt holds a secret. I keep it as you typed it, and show it to nobody but you: `lukasa get {}`, or the page."


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
    kept = f"{_KEPT[outcome]}: “{asked.content}” ({place}{life}{owner})"
    return kept + _SECRET.format(step.result.get("id")) if step.result.get("sensitive") else kept


def _forget(target: str, steps: Sequence[_Step]) -> str | ToolCall:
    """Name everything that matches, and ask: nothing is forgotten before the user has said yes."""
    if not target or target.lower() in ("it", "that", "this", "das", "es"):
        return "What should I forget? Say it as in “forget that the villain is called Malachar”."
    if not steps:
        return _call("memory_read", steps, query=target, limit=MATCHED)
    if steps[-1].error:
        return _trouble(steps[-1])
    found = _forgettable(target, steps[-1])
    if not found:
        return "I found nothing like that to forget."
    listed = "\n".join(f"{number}. {_quote(hit)}" for number, hit in enumerate(found, 1))
    if len(found) == 1:
        return f"I found this:\n{listed}\n{SHALL_I} it? Answer yes or no."
    many = " at least" if len(found) == MATCHED else ""
    choice = f"{SHALL_I} all of them? Answer yes, no, or with the numbers to forget."
    return f"I found{many} {len(found)} entries:\n{listed}\n{choice}"


def _forgettable(target: str, step: _Step) -> list[Mapping[str, Any]]:
    return matching(target, _hits(step), summaries=True)


_YES = frozenset("yes yeah yep sure ok okay confirm confirmed correct right all both ja klar genau alle beide".split())
_NO = frozenset("no nope not dont cancel keep never none neither nein nicht stop keine".split())
_ORDINALS = {w: n for n, w in enumerate("first second third fourth fifth".split(), 1)} | {"erste": 1, "zweite": 2}


def _chosen(turn: _Turn) -> list[Mapping[str, Any]] | None:
    """Return the entries that the user agrees to forget; None if this turn does not answer such a question."""
    asked = turn.before
    if asked is None or SHALL_I not in asked.reply or not asked.steps:
        return None
    target = intents.understand(asked.said).forget
    said = words(turn.said)
    if target is None or not said or len(said) > 12:
        return None
    found = _forgettable(target, asked.steps[-1])
    numbers = [int(w) if w.isdigit() else _ORDINALS[w] for w in said if w.isdigit() or w in _ORDINALS]
    if not _NO.isdisjoint(said):
        return []
    if numbers:
        return [found[n - 1] for n in dict.fromkeys(numbers) if 1 <= n <= len(found)]
    return found if not _YES.isdisjoint(said) else None


def _forget_chosen(chosen: Sequence[Mapping[str, Any]], steps: Sequence[_Step]) -> str | tuple[ToolCall, ...]:
    if not chosen:
        return "I have forgotten nothing."
    if not steps:
        reason = "the user asked to forget it"
        return tuple(
            ToolCall(f"offline_{number}_memory_forget", "memory_forget", {"id": hit.get("id"), "reason": reason})
            for number, hit in enumerate(chosen, 1)
        )
    failed = next((step for step in steps if step.error), None)
    gone = [str(step.result.get("content", "")) for step in steps if not step.error]
    told = "I have forgotten this, and you can restore it: " + "; ".join(f"“{text}”" for text in gone) if gone else ""
    return told if failed is None else f"{told}\n{_trouble(failed)}".strip()


# Look up in documents


def _meant(asked: Lookup, before: _Turn | None) -> Lookup:
    """Take the topic from the message before, if this one says only "look it up"."""
    return replace(asked, topic=before.said.strip()) if asked.refers and before is not None else asked


def _look_up(asked: Lookup, said: str, steps: Sequence[_Step]) -> str | ToolCall:
    """Search the documents for the topic, then for the topic beside the document's name, and quote."""
    searched = [step for step in steps if step.call.name == "corpus_search"]
    if searched and searched[-1].error:
        return _trouble(searched[-1])
    told = [one for step in searched for one in quoted(asked, passages(step.result))]
    if told:
        return "\n".join(dict.fromkeys(told))
    if not searched:
        return _call("corpus_search", steps, query=asked.topic, limit=LOOKED_UP)
    if document_count(searched[0].result) and asked.place and len(searched) == 1:
        return _call("corpus_search", steps, query=f"{asked.place} {asked.topic}", limit=LOOKED_UP)
    if not asked.certain:
        return _recall(said, steps)
    if not document_count(searched[0].result):
        return NO_DOCUMENTS
    where = f"a document called “{asked.place}”" if asked.place else "the documents"
    return f"I found nothing about “{asked.topic}” in {where}."


# Correct


class _Noted(Struct, frozen=True):
    """A statement that this conversation stored or quoted."""

    id: str
    tier: str
    content: str


def _correction(turn: _Turn, embedder: Embedder | None) -> tuple[_Noted, str] | None:
    """Return the statement that a message corrects, and the text to store; None if it corrects nothing."""
    before = turn.before
    while before is not None:
        for noted in _noted(before):
            text = corrected(turn.said, noted.content, embedder)
            if text is not None:
                return noted, text
        before = before.before
    return None


def _noted(turn: _Turn) -> Iterator[_Noted]:
    """Yield the statements of a turn, the last one first: stored, or quoted from memory."""
    for step in reversed(turn.steps):
        result = step.result
        if step.call.name == "memory_put" and result.get("outcome") in _KEPT:
            yield _Noted(str(result.get("id")), str(result.get("tier")), str(step.call.arguments.get("content", "")))
        for hit in _hits(step) if step.call.name == "memory_read" else ():
            content = str(hit.get("content", ""))
            if f"“{content}”" in turn.reply and SUMMARY not in hit.get("tags", ()):
                yield _Noted(str(hit.get("id")), str(hit.get("tier")), unhedged(content))


def _correct(noted: _Noted, text: str, steps: Sequence[_Step]) -> str | ToolCall:
    if not steps:
        return _call("memory_put", steps, content=text, said_by="user", tier=noted.tier, corrects=noted.id)
    told = _remembered(Request(text), steps[-1])
    kept = steps[-1].result.get("outcome") in _KEPT and not steps[-1].error
    return f"{told}. Earlier: “{noted.content}” (may no longer hold)" if kept else told


# Counting in the notes


def _counting(count: Count, steps: Sequence[_Step]) -> str | ToolCall | None:
    """Keep a running count: read the notes, add, write the sum, report it. None if there is no count to add to."""
    if steps and steps[-1].error:
        return _trouble(steps[-1])
    if not steps:
        return _call("note_read", steps)
    if steps[0].call.name != "note_read":
        return None
    found = _counter(count, steps[0])
    if len(steps) == 1:
        if found is None and not (count.starts and count.unit):
            return None
        key, before = found or (f"{count.unit} {count.verb}".strip(), 0)
        return _call("note_write", steps, key=key, value=(before if count.adds else 0) + count.amount)
    key, total = str(steps[-1].call.arguments.get("key", "")), steps[-1].call.arguments.get("value", 0)
    told = f"{total} {count.unit or key.partition(' ')[0]}"
    if count.adds and found is None:
        return f"I have counted {told}, only what you told me now: I had no count of it before in this conversation."
    if count.asks:
        return f"That makes {told}, counting what you told me in this conversation."
    done = count.verb or key.partition(" ")[2]
    return f"Noted: {told}{f' {done}' if done else ''} so far. I keep count for this conversation."


def _how_many(said: str, steps: Sequence[_Step]) -> str | ToolCall:
    """Answer a question about a count: from the notes first, then from memory."""
    if not steps:
        return _call("note_read", steps)
    counters = [(key, value) for key, value in _notes(steps[0]) if _is_number(value)]
    topic = _topic(said) - set(terms("many much total count tally altogether makes put running viele insgesamt"))
    for key, value in counters:
        if set(terms(key)) <= set(terms(said)) or (topic & set(terms(key)) == topic and len(counters) == 1):
            return f"{value} {key}, counting what you told me in this conversation."
    return _recall(said, steps[1:])


def _counter(count: Count, step: _Step) -> tuple[str, float | int] | None:
    """Return the key and value of the count that a number belongs to: the same unit, and the same verb or none."""
    counters = [(key, value) for key, value in _notes(step) if _is_number(value)]
    if count.unit:
        counters = [(key, value) for key, value in counters if set(terms(count.unit)) & set(terms(key))]
    same = [pair for pair in counters if count.verb and set(terms(count.verb)) & set(terms(pair[0]))]
    general = [pair for pair in counters if not count.verb or " " not in pair[0]]
    found = same or (general if len(general) == 1 else [])
    return found[0] if found else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _notes(step: _Step) -> Iterator[tuple[str, Any]]:
    notes = step.result.get("notes")
    for key, value in notes.items() if isinstance(notes, Mapping) else ():
        yield str(key), value


# Recall


_LEFT_OUT = "({}: I show secrets to nobody but you, by `lukasa read --sensitive` or on the page.)"


def _recall(said: str, steps: Sequence[_Step], *, last_time: bool = False) -> str | ToolCall:
    if not steps or steps[-1].call.name != "memory_read":
        return _call("memory_read", steps, query=said)
    if steps[-1].error:
        return _trouble(steps[-1])
    found = _hits(steps[-1])
    if last_time:
        summaries = [hit for hit in found if SUMMARY in hit.get("tags", ())]
        if summaries:
            return "\n".join(_quote(hit) for hit in summaries[:QUOTED])
    quoted = matching(said, found)[:QUOTED]
    if quoted:
        return "\n".join(_quote(hit) for hit in quoted)
    notes = steps[-1].result.get("notes")
    left_out = [note for note in notes if "sensitive" in str(note)] if isinstance(notes, list) else []
    return f"{NOTHING}\n{_LEFT_OUT.format(left_out[0])}" if left_out else NOTHING


def _overview(steps: Sequence[_Step]) -> str | ToolCall:
    if not steps:
        return _call("note_read", steps)
    if len(steps) == 1:
        return _call("memory_read", steps, query="", limit=LISTED)
    if steps[-1].error:
        return _trouble(steps[-1])
    hits = _hits(steps[-1])
    found = [hit for hit in hits if SUMMARY not in hit.get("tags", ())]
    here = [hit for hit in found if hit.get("tier") != "account"]
    everywhere = [hit for hit in found if hit.get("tier") == "account"]
    counts = [f"- {value} {key}" for key, value in _notes(steps[0]) if _is_number(value)]
    parts = ["What I have noted about this workspace:", *(f"- {_quote(hit)}" for hit in here)] if here else [FRESH]
    if everywhere:
        parts += ["What I have noted for all your workspaces:", *(f"- {_quote(hit)}" for hit in everywhere)]
    if counts:
        parts += ["What I have counted in this conversation:", *counts]
    if len(hits) >= LISTED:
        parts.append(f"I looked at {len(hits)} entries; there may be more. Ask about a topic to find them.")
    return "\n".join(parts)


def _hits(step: _Step) -> list[Mapping[str, Any]]:
    hits = step.result.get("hits")
    return [hit for hit in hits if isinstance(hit, Mapping)] if isinstance(hits, list) else []


def matching(question: str, hits: Sequence[Mapping[str, Any]], *, summaries: bool = False) -> list[Mapping[str, Any]]:
    """Return the hits that answer a question: they share its content words, or are marked as near in meaning.

    If the question names a person, only a hit with that name is an answer. German writes every noun with a capital, so
    there a capital names nobody. Summaries of conversations answer nothing, but a request to forget concerns them.
    """
    about = _topic(question)
    german = len(_GERMAN.intersection(words(question))) > 1
    names = set() if german else {fold(name) for name in _NAME.findall(question)}
    scored = []
    for place, hit in enumerate(hits):
        content = str(hit.get("content", ""))
        summary = SUMMARY in hit.get("tags", ())
        if (summary and not summaries) or (names and not any(name in fold(content) for name in names)):
            continue
        share = len(about & set(terms(content))) / len(about) if about else 0.0
        if share >= ENOUGH or (hit.get("near") is True and not summary):
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
    return f"{who}: “{hit.get('content', '')}”{_earlier(hit)}"


def _earlier(hit: Mapping[str, Any]) -> str:
    """Return the other statements about the same thing that a read folds under a hit, with their dates and notes."""
    earlier = hit.get("earlier")
    folded = [one for one in earlier if isinstance(one, Mapping)] if isinstance(earlier, list) else []
    told = [f"{one.get('said', '')} “{one.get('content', '')}” ({one.get('note', '')})" for one in folded]
    return f"; earlier: {'; '.join(told)}" if told else ""
