"""Understand what a message asks of memory: remember, forget, or answer; in words that nobody listed.

A request has two parts: clauses about the note ("please remember it", "just in this chat") and the statement. A message
is cut into clauses at its marks. A clause is about the note if all its words are words about notes; with an embedder
also if a linear classifier, fitted to the labelled examples in wordings.toml, says so. Everything else is the
statement, word for word. English and German by words; the classifier knows the languages of its embedder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.note_words import (
    ALONE,
    ASKS,
    FORGET,
    GERMAN,
    KEEP,
    LINKS,
    LOSE,
    NOT,
    POLITE,
    SPEAKERS,
    THIS,
    VOCABULARY,
    About,
    asks,
    bag,
    folded,
    merged,
    properties,
    said_about,
)
from lukasa.model.requests import HIGH, LOW, Request, forgetting, request, sentence
from lukasa.model.values import Lifetime
from lukasa.model.wordings import TextEmbedder, label

SHORT_CLAUSE = 6  # words; a clause before a request that may say how to keep it: "right now, in this conversation"
LONGEST_CLAUSE = 120  # characters; a longer clause is a statement


class Intent(Struct, frozen=True):
    """The request of a message: to remember (`asked`), to forget (`forget`), to answer (`question`), or not to keep it.

    An empty `asked.content` means that the person did not say what; an empty `forget` likewise. A message that asks
    for nothing has none of the four.
    """

    asked: Request | None = None
    forget: str | None = None
    question: bool = False
    declined: bool = False


def understand(text: str, embedder: TextEmbedder | None = None) -> Intent:
    """Return what a message asks of memory."""
    target = _forgetting(text)
    if target is None:
        target = forgetting(text)
    if target is not None:
        return Intent(forget=target.rstrip(".!?"))
    if _declines(text):
        return Intent(declined=True)
    asked = _request(text, embedder)
    if asked is None:
        asked = _inside(text)
    if embedder is not None and asked is not None and not asked.content:
        asked = _request(text, None) or asked  # the examples leave no statement: they misread one
    if asked is not None:
        return Intent(asked=asked)
    return Intent(question=is_question(text))


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Where a clause may end. A dash between digits is a span ("1–3"), a point or colon inside a word is part of it.
_MARK = re.compile(r"[.!?…](?=\s|$)|[,;](?=\s)|:(?=\s|$)|(?<=\s)-(?=\s)|(?<!\d)[—–]|[—–](?!\d)|[()\n]")


class _Clause(NamedTuple):
    """A stretch of a message between two marks."""

    start: int
    end: int
    mark: str  # that ends it
    words: tuple[str, ...]


def _clauses(text: str) -> list[_Clause]:
    found, start = [], 0
    ends = [(m.start(), m.end(), m[0]) for m in _MARK.finditer(text)]
    for at, after, mark in [*ends, (len(text), len(text), "")]:
        words = tuple(folded(m[0]) for m in _WORD.finditer(text, start, at)) if at - start <= LONGEST_CLAUSE else ("",)
        if words:
            found.append(_Clause(start, at, mark, words))
        elif found:
            found[-1] = found[-1]._replace(mark=found[-1].mark + mark)
        start = after
    return found


def _declines(text: str) -> bool:
    """Say whether a message asks not to keep something: "don't store that", "no need to remember this"."""
    clauses = _clauses(text)
    named = merged([sets for clause in clauses if (sets := properties(clause.words)) is not None])
    return named.reach != "conversation" and any(
        all(not some.isdisjoint(clause.words) for some in (NOT, KEEP, THIS))
        and (FORGET | LOSE | SPEAKERS).isdisjoint(clause.words)
        and VOCABULARY.issuperset(clause.words)
        and properties(clause.words) is None
        and not asks(clause.words)
        for clause in clauses
    )


def _request(text: str, embedder: TextEmbedder | None) -> Request | None:
    """Find the clauses about the note at both ends; the rest is the statement."""
    clauses = _clauses(text)
    if not clauses or (asks(clauses[0].words) and not clauses[0].mark.startswith(":")):
        return None
    end, after = _from_end(text, clauses, embedder)
    if (joined := _joined(text, clauses[end - 1])) is not None:
        clauses[end - 1 :] = [joined[0]]
        after.append(joined[1])
    start, before = _from_start(text, clauses[:end], embedder)
    rest, about = clauses[start:end], [*before, *after]
    while len(rest) > 1 and VOCABULARY.issuperset(rest[0].words) and _opens(text, rest[1:]):
        rest = rest[1:]
    body = _text(text, rest)
    head = _lead(text, rest[0]) if rest else None
    own = request(body) if head is None else None
    if head is not None:
        about.append(head[0])
        body = body[head[1] - rest[0].start :]
    elif own is not None:
        about.append(About(True, own))
        body = own.content
    elif before and rest and rest[0].words[0] in LINKS:
        body = body.partition(" ")[2]
    if not any(found.keeps for found in about):
        if not rest or not (_announced(clauses[:start], before) or _marked(clauses[end - 1 :], after)):
            return None
        if not before:
            return replace(merged([found.sets for found in after if found.sets is not None]), content=sentence(body))
        about, body = before, _text(text, clauses[start:])  # the end says nothing about a note that nobody asks for
    if body.endswith("?"):
        if own is not None or not _addressed(clauses[0].words):
            return None
        body = body[:-1]
    if own is None and body:
        tail = request(f"remember: {body}")  # a property at the end of the statement
        if tail is not None and tail.content:
            about.append(About(True, tail))
            body = tail.content
    if not body and own is None and (THIS | ALONE).isdisjoint(word for clause in clauses for word in clause.words):
        return None
    asked = merged([found.sets for found in about if found.sets is not None])
    return replace(asked, content=sentence(body))


def _inside(text: str) -> Request | None:
    """Return a request in the middle of a message: "When I am back, remember that I owe Ada tea". Nothing is cut."""
    clauses = _clauses(text)
    if not clauses or is_question(text):
        return None
    for number, clause in enumerate(clauses[1:], 1):
        lead = _lead(text, clause)
        said = lead[0] if lead is not None else said_about(clause.words) if _by_words(clause.words) else None
        if said is not None and said.keeps:
            before = [properties(other.words) for other in clauses[:number] if len(other.words) <= SHORT_CLAUSE]
            return replace(merged([sets for sets in (said.sets, *before) if sets is not None]), content=sentence(text))
    return None


def _opens(text: str, clauses: Sequence[_Clause]) -> bool:
    """Say whether a request begins with one of these clauses, after clauses of filler words."""
    first = next((clause for clause in clauses if not VOCABULARY.issuperset(clause.words)), None)
    return first is not None and (_lead(text, first) is not None or request(text[first.start : first.end]) is not None)


def _joined(text: str, clause: _Clause) -> tuple[_Clause, About] | None:
    """Part a clause from a request that follows it without a mark: "… and I want you to remember that"."""
    found = list(_WORD.finditer(text, clause.start, clause.end)) if clause.words != ("",) else []
    at = next((i for i in range(len(found) - 1, 1, -1) if clause.words[i] in ("and", "but", "so", "und", "aber")), 0)
    tail = clause.words[at + 1 :]
    if not at or not tail or bag("you please remember bitte dir").isdisjoint(tail) or not VOCABULARY.issuperset(tail):
        return None
    said = said_about(tail)
    return (_Clause(clause.start, found[at].start(), "", clause.words[:at]), said) if said.keeps else None


def _text(text: str, clauses: Sequence[_Clause]) -> str:
    """Return the text of clauses, with the mark that ends a sentence and without one that only joins clauses."""
    if not clauses:
        return ""
    last = clauses[-1]
    after = text[last.end : last.end + len(last.mark)]
    return text[clauses[0].start : last.end].strip() + (after if after[:1] in tuple(".!?…)") else "")


def _from_end(text: str, clauses: Sequence[_Clause], embedder: TextEmbedder | None) -> tuple[int, list[About]]:
    """Return where the clauses about the note at the end begin. Filler clauses belong to them only before one."""
    kept, found, at = len(clauses), list[About](), len(clauses)
    while at > 1 and (about := _about(text, clauses[at - 1], embedder)) is not None:
        at -= 1
        if about:
            found.append(_claimed(about, clauses[at].words))
        if about or (found and clauses[at].mark.startswith(("?", ":"))):  # "Got that? Keep it.", "Scope: …"
            kept = at
    return kept, found


def _claimed(about: About, words: Sequence[str]) -> About:
    """Read "that is just for this chat" after a statement as a request to keep it so long."""
    sets = about.sets
    stays = not bag("only inside within stays stay remain remains leave alone nowhere nur").isdisjoint(words)
    claims = sets is not None and (
        sets.private or sets.reach in ("conversation", "account") or (sets.reach == "workspace" and stays)
    )
    present = not THIS.isdisjoint(words) and bag("was had did went war waren").isdisjoint(words)
    return replace(about, keeps=True) if claims and present else about


def _from_start(text: str, clauses: Sequence[_Clause], embedder: TextEmbedder | None) -> tuple[int, list[About]]:
    """Return where the clauses about the note at the start end. A colon after one of them ends them."""
    kept, found, at = 0, list[About](), 0
    while at < len(clauses):
        only = at == len(clauses) - 1  # the last clause may be all that was said
        about = _about(text, clauses[at], None if only else embedder)
        if about is None or (about.keeps and clauses[at].mark.startswith(",") and not _by_words(clauses[at].words)):
            break
        at += 1
        ends = clauses[at - 1].mark.startswith(":")
        if about:
            found.append(about)
        if about or (found and ends):
            kept = at
        if found and ends:
            break
    return kept, found


def _about(text: str, clause: _Clause, embedder: TextEmbedder | None) -> About | None:
    """Return what a clause says about the note: nothing if it is filler; None if it is part of a statement."""
    if VOCABULARY.issuperset(clause.words):
        return said_about(clause.words)
    if _refers(clause.words) and (said := said_about(clause.words)).keeps:
        return said
    if _lead(text, clause) is not None or request(text[clause.start : clause.end]) is not None:
        return None
    if asks(clause.words) or (clause.mark.startswith("?") and not _addressed(clause.words)):
        return None
    return _by_example(text[clause.start : clause.end].strip(), clause.words, embedder)


def _by_words(words: Sequence[str]) -> bool:
    return VOCABULARY.issuperset(words) or _refers(words)


def _refers(words: Sequence[str]) -> bool:
    """Say whether a clause asks to keep "it" in some way: "remember that for a little while"."""
    for i, word in enumerate(words[:-1]):
        if word not in VOCABULARY:
            return False
        if word in KEEP and words[i + 1] in THIS:
            return i + 2 == len(words) or words[i + 2] in _WAYS
    return False


_WAYS = bag("for in at until till as across during within only just forever when while by with on under fur bis als")


def _lead(text: str, clause: _Clause) -> tuple[About, int] | None:
    """Return the words about the note before "that", or before what follows the verb; and where they end."""
    found = list(_WORD.finditer(text, clause.start, clause.end))
    words = [folded(m[0]) for m in found]
    known = next((i for i, word in enumerate(words) if word not in VOCABULARY), len(words))
    for i, word in enumerate(words[: known + 1]):
        if word in LINKS and i and (said := said_about(tuple(words[: i + 1]))).keeps:
            return said, found[i].end()
    verb = next((i for i, word in enumerate(words) if word not in POLITE), len(words))
    if clause.mark.startswith(":") and known < len(words) and verb < known and words[verb] in KEEP:
        return said_about(tuple(words[: verb + 1])), found[verb].end()  # "store the name of my cat: Tom"
    for i, word in enumerate(words[:known]):
        down = word == "down" and i and words[i - 1] in ("jot", "note")
        if (word in ALONE or down) and i + 1 < len(words) and i and (said := said_about(tuple(words[: i + 1]))).keeps:
            return said, found[i].end()
    return None


def _announced(clauses: Sequence[_Clause], before: Sequence[About]) -> bool:
    """Say whether properties before the statement make it a request: "Just in this chat: …", "Short-term: …"."""
    said = merged([about.sets for about in before if about.sets is not None])
    if not (said.reach or said.lifetime is not None or said.private):
        return False
    only = {"only", "just", "nur", "bloss", "solely", "purely"}.intersection(w for c in clauses for w in c.words)
    return bool(only) or clauses[-1].mark.startswith((":", "—", "–", "-"))


def _marked(clauses: Sequence[_Clause], after: Sequence[About]) -> bool:
    """Say whether the end of a statement names a tier or owner, set apart: "… — workspace only", "… (just for you)"."""
    said = merged([about.sets for about in after if about.sets is not None])
    if not (said.reach or said.private):
        return False
    apart = clauses[0].mark.startswith(("(", "—", "–", "-"))
    return apart or not bag("only just scope level nur").isdisjoint(w for clause in clauses[1:] for w in clause.words)


def _addressed(words: Sequence[str]) -> bool:
    return words[0] in ("can", "could", "would", "will", "please", "kannst", "konntest", "wurdest", "bitte", "hey")


_REMOVE = bag("forget delete erase remove drop scrap discard vergiss losche losch streiche streich entferne")
_TARGET = re.compile(
    r"\s*(?:(?:about|that|of|bitte|mal|everything|anything|alles|was ich|what i|the fact|the memory|the note|the thing"
    r"|(?:said|told you|know|noted|have|stored) about|my memory|dass|über|von)\b[\s,:]*)*",
    re.IGNORECASE,
)


def _forgetting(text: str) -> str | None:
    """Return what a message wants forgotten, in words that `forgetting` does not know; None if it wants nothing so."""
    found = list(_WORD.finditer(text))
    for i, word in enumerate(found):
        name = folded(word[0])
        if name in _REMOVE:
            rest = text[_TARGET.match(text, word.end()).end() :]  # type: ignore[union-attr]
            said = {folded(other[0]) for other in found[i : i + 4]}
            if not NOT.isdisjoint(said) or (name not in ("forget", "vergiss") and not _of_memory(found, i)):
                return None
            return sentence(rest).rstrip(".!?")
        if name not in POLITE:
            return None
    return None


def _of_memory(found: Sequence[re.Match[str]], at: int) -> bool:
    """Say whether something in memory is to be removed, and not a file or a line."""
    said = {folded(word[0]) for word in found[at + 1 : at + 8]}
    return not said.isdisjoint(
        bag("memory memories note notes fact know remember noted notiz erinnerung weisst told said")
    )


_TELL = bag("tell show give list summarise summarize recap recall describe zeig zeige nenne erzahl erzahle sag liste")


def is_question(text: str) -> bool:
    """Say whether a message asks for an answer."""
    words = [folded(m[0]) for m in _WORD.finditer(text[:LONGEST_CLAUSE])]
    skip = (POLITE - {"i", "you", "du"}) | bag("remind me of us mir uns")
    known = [word for word in words if word not in skip]
    if text.rstrip().endswith(("?", "？")) or not known:
        return bool(text.rstrip().endswith(("?", "？")))
    if known[0] in ASKS or known[0] in _TELL or words[:2] == ["remind", "me"]:
        return True
    if known[0] in bag("fill bring catch update walk brief") and not {"me", "us"}.isdisjoint(words[:3]):
        return True
    wonders = known[:2] in (["i", "wonder"], ["i", "forgot"]) or known[1:2] == ["know"]
    return wonders and not ASKS.isdisjoint(known[2:])


_PROPERTIES = {
    "account": Request("", reach="account"),
    "workspace": Request("", reach="workspace"),
    "conversation": Request("", reach="conversation", lifetime=Lifetime.CONVERSATION),
    "short_term": Request("", lifetime=Lifetime.SHORT_TERM),
    "long_term": Request("", lifetime=Lifetime.LONG_TERM),
    "private": Request("", private=True),
    "low": Request("", importance=LOW),
    "high": Request("", importance=HIGH),
}


def _by_example(text: str, words: Sequence[str], embedder: TextEmbedder | None) -> About | None:
    """Return what a clause says about the note by the examples; None if it is part of a statement.

    A clause that asks to keep something speaks of "it", or to "you".
    """
    if len(words) < 2 or any(word.isdigit() for word in words) or not GERMAN.isdisjoint(words):
        return None
    found = label("clauses", text, embedder, "content")
    if found == "content" or not SPEAKERS.isdisjoint(words[:1]):
        return None
    named, refers = properties(words), not THIS.isdisjoint(words)
    if found == "keep":
        return About(True, named) if refers or not ({"you", "your"} | KEEP).isdisjoint(words) else None
    return About(found == "long_term" and refers, merged([_PROPERTIES[found], *([named] if named is not None else [])]))
