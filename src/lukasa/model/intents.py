"""Understand what a message asks of memory: remember, forget, or answer; in words that nobody listed.

A request has two parts: clauses about the note ("please remember it", "just in this chat") and the statement. A message
is cut into clauses at its marks. A clause is about the note if all its words are words about notes; with an embedder
also if a linear classifier, fitted to the labelled examples in wordings.toml, says so. Everything else is the
statement, word for word. English and German by words; the classifier knows the languages of its embedder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.arrays import np
from lukasa.model.errors import EmbedderError
from lukasa.model.requests import HIGH, LOW, Request, forgetting, request, sentence
from lukasa.model.text import fold
from lukasa.model.values import Lifetime

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A label of the classifier holds if it is this far above the label of ordinary text, and above `LEAST` itself. Chosen
# on the examples that tests/unit/test_intents.py holds apart (docs/decisions/0041-wordings-by-example.md).
MARGIN, LEAST = 0.2, -0.45
RIDGE = 0.3
SHORT_CLAUSE = 6  # words; a clause before a request that may say how to keep it: "right now, in this conversation"
LONGEST_CLAUSE = 120  # characters; a longer clause is a statement


class TextEmbedder(Protocol):
    """The part of an embedder that the classifier needs. Its model has a `floor` if thresholds apply to it."""

    @property
    def model(self) -> Any: ...

    def embed_memories(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


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


# Words about notes, folded: without case, accents and apostrophes


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(f" {' '.join(phrase.split())} " for phrase in text.split("|"))


_KEEP = _set(
    """remember memorise memorize memorized memorised note jot store save record retain log stash bookmark preserve
    merk merke merken notier notiere notieren notiert speicher speichere speichern behalt behalte behalten vermerk
    vermerke vermerken einpragen einprage remembering reminder memo"""
)
_ALONE = _set("remember memorise memorize merk merke")  # may stand before a statement without "that" or a mark
_HOLD = _set("keep bear hold hang have put get take make write add commit file track pin mark tuck leave")
_HELD = _set(
    """mind memory memories note notes notebook file record records list track tally count down onto kopf hinterkopf
    gedachtnis notiz notizen sinn hold scratchpad thought preference rule"""
)
_THIS = _set("this that it these those following one them das dies dieses diese es folgendes folgende her him")
_NOT = _set("not dont never no cannot cant nicht nie niemals without ohne kein keine keinen wont isnt doesnt")
_FORGET = _set("forget vergiss vergesse vergessen")
_LOSE = _set("lose lost slip verlier verliere")
_COUNTS = _set("tally count zahl zahle mitzahlen strichliste")
_SPEAKERS = _set("i we he she they ive weve ich wir er sie ihr ill im id")
_ASKS = _set(
    """what whats who whos whom whose where wheres when why how which do does did is are was were have has had any wer
    wen wem wo wann warum wieso wie welche welcher welches welchen weisst kennst erinnerst hast habe gibt ist sind
    hat haben"""
)
_PLACES = _set(
    "workspace workspaces project projects arbeitsbereich arbeitsbereiche arbeitsbereichen projekt projekte projekten"
)
_TALKS = _set(
    """chat chats conversation conversations session sessions talk chatting discussion dialogue dialog gesprach
    unterhaltung sitzung talking"""
)
_ALL = _set("all every each any across everywhere wherever whichever whatever alle allen aller jede jeden jedem jedes")
_EVERYWHERE = _set(
    "everywhere wherever global globally universally uberall accountwide kontoweit konto account accounts"
)
_ONLY = _set(
    """only just solely purely merely alone nur bloss lediglich allein this current present dieses diesem diesen diese
    local limited restricted confined"""
)
_SHORT = _set("shortterm temporary temporarily briefly kurzfristig vorubergehend kurzzeitig temporar")
_SPAN = _set("few couple next coming several some nachsten kommenden paar einige")
_TIMES = _set("day days week weeks fortnight hours while tage tagen woche wochen")
_LONG = _set("permanently permanent forever indefinitely longterm dauerhaft langfristig endgultig")
_PRIVATE = _set("confidence private privately yourself confidential confidentially secretly privat vertraulich")
_IMPORTANT = _set("important importantly crucial critical essential vital wichtig entscheidend")
_TRIVIAL = _set("unimportant trivial minor unwichtig nebensachlich")
_RANK = _set("priority importance prioritat wichtigkeit")
_PHRASES = {
    "short": _phrases("""short term | for a while | for a bit | a short time | for the time being | fur kurze zeit"""),
    "long": _phrases("""long term | for good | for ever | for always | fur immer | auf dauer"""),
    "private": _phrases(
        """only you | only for you | just for you | for you only | for you alone | between us | between you and me
        | for yourself | to yourself | note to self | your own | as your | nobody else | no one else |
        other agents | nur fur dich | fur dich allein | unter uns | your eyes | behalte fur dich |
        behalte das fur dich | behalte es fur dich"""
    ),
    "talk": _phrases(
        """until we are done | until we are finished | until were done | until were finished | while we talk |
        bis wir fertig sind | solange wir reden"""
    ),
    "keep": _phrases(
        """on file | on record | the record show | remind me | for the record | for your records | future reference
        | for later | you should know | you to know | erinnere mich | schreib | halte fest | halt fest |
        denk daran | denk dran | denke daran | denke dran | nicht vergessen | vergiss nicht | fur spater |
        keep count | you need to know | you must know"""
    ),
}
_FILLER = _set(
    """please kindly hey hi hello ok okay oh also and so well now just only can could would will shall should must may
    might you your yours i id im ill me my mine myself we us our to too for of off the a an this that it its these
    those them one once thing things something fact facts bit piece info information detail point stuff here there
    in into on at with as be is are was do does like want need wish let lets make sure always ever thanks thank much
    very really quite quick quickly away then later future reference from by way btw if possible when while time
    times next have got has were youd youll youre ive thats theres heres what say said tell told ask again still up
    out about remain stays stay going forward back under any part set long lasting short term level tier scope wide
    whole entire single specific particular own self eyes agent agents others other else nobody anyone anybody
    somebody share shared between sharing among beyond after until till end ends ended over done finish finished
    closes close current duration moment being low high top priority importance big deal matter matters lot worth
    use uses used using available known valid apply applies true count running total good work working talking
    speaking speak today heute first last few more than lower keep keeping kept holds through throughout during
    inside within outside no not dont never cant cannot without cause because note memo entry reminder heads know
    but however though remembered appreciate grateful glad happy great nice helpful favour favor small telling
    somewhere safe handy show open start begin along relevant regardless finally simply bitte aber mal doch dir dich
    du mir mich ich wir uns euch und auch noch jetzt sehr ist sind ein eine einen einem einer der die das den dem
    des dies dieser dass daran dran fur am auf mit zu zum zur von bis es sie er kannst konntest wurdest magst mochte
    mochtest wollen sollst sollte denk denke schreib schreibe halt halte fest unbedingt gut danke hier dort nur
    bloss spater nachste nachstes kurze zeit immer kopf unter rest gelte gelten gilt meine meinen meiner meinem mein
    folgendes folgende erinnere erinner kein keine als notiz eigene eigenen eigener niemand sonst anderen agenten
    niedrige niedriger hohe hoher solange reden fertig wissen or two three little brief side past doesnt isnt scoped
    everything anything lasts goes runs continues remains right needs mental preference default setting local merken"""
)
_VOCABULARY = (
    _FILLER | _KEEP | _LOSE | _COUNTS | _HOLD | _HELD | _THIS | _NOT | _FORGET | _PLACES | _TALKS | _ALL
    | _EVERYWHERE | _ONLY | _SHORT | _SPAN | _TIMES | _LONG | _PRIVATE | _IMPORTANT | _TRIVIAL | _RANK
    | _set("channel topic thread kanal thema remind which where irrespective egal")
)  # fmt: skip
_LINKS = _set("that dass")
_GERMAN = _set("der die das den dem ein eine ist sind und nicht ich du wir mit auf fur im zu von heute meine mein")

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Where a clause may end. A dash between digits is a span ("1–3"), a point or colon inside a word is part of it.
_MARK = re.compile(r"[.!?…](?=\s|$)|[,;](?=\s)|:(?=\s|$)|(?<=\s)-(?=\s)|(?<!\d)[—–]|[—–](?!\d)|[()\n]")


class _Clause(NamedTuple):
    """A stretch of a message between two marks."""

    start: int
    end: int
    mark: str  # that ends it
    words: tuple[str, ...]


class _About(Struct, frozen=True):
    """What a clause says about the note. `keeps` if it asks to keep something; `sets` if it names a property."""

    keeps: bool = False
    sets: Request | None = None

    def __bool__(self) -> bool:
        return self.keeps or self.sets is not None


def _folded(word: str) -> str:
    return fold(word).replace("'", "").replace("’", "")


def _clauses(text: str) -> list[_Clause]:
    found, start = [], 0
    ends = [(m.start(), m.end(), m[0]) for m in _MARK.finditer(text)]
    for at, after, mark in [*ends, (len(text), len(text), "")]:
        words = tuple(_folded(m[0]) for m in _WORD.finditer(text, start, at)) if at - start <= LONGEST_CLAUSE else ("",)
        if words:
            found.append(_Clause(start, at, mark, words))
        elif found:
            found[-1] = found[-1]._replace(mark=found[-1].mark + mark)
        start = after
    return found


# Requests to remember


def _declines(text: str) -> bool:
    """Say whether a message asks not to keep something: "don't store that", "no need to remember this"."""
    return any(
        all(not some.isdisjoint(clause.words) for some in (_NOT, _KEEP, _THIS))
        and (_FORGET | _LOSE | _SPEAKERS).isdisjoint(clause.words)
        and _VOCABULARY.issuperset(clause.words)
        and _properties(clause.words) is None
        and not _asks(clause.words)
        for clause in _clauses(text)
    )


def _request(text: str, embedder: TextEmbedder | None) -> Request | None:
    """Find the clauses about the note at both ends; the rest is the statement."""
    clauses = _clauses(text)
    if not clauses or (_asks(clauses[0].words) and not clauses[0].mark.startswith(":")):
        return None
    end, after = _from_end(text, clauses, embedder)
    if (joined := _joined(text, clauses[end - 1])) is not None:
        clauses[end - 1 :] = [joined[0]]
        after.append(joined[1])
    start, before = _from_start(text, clauses[:end], embedder)
    rest, about = clauses[start:end], [*before, *after]
    while len(rest) > 1 and _VOCABULARY.issuperset(rest[0].words) and _opens(text, rest[1:]):
        rest = rest[1:]
    body = _text(text, rest)
    head = _lead(text, rest[0]) if rest else None
    own = request(body) if head is None else None
    if head is not None:
        about.append(head[0])
        body = body[head[1] - rest[0].start :]
    elif own is not None:
        about.append(_About(True, own))
        body = own.content
    elif before and rest and rest[0].words[0] in _LINKS:
        body = body.partition(" ")[2]
    if not any(found.keeps for found in about):
        if not rest or not (_announced(clauses[:start], before) or _marked(clauses[end - 1 :], after)):
            return None
        if not before:
            return replace(_merged([found.sets for found in after if found.sets is not None]), content=sentence(body))
        about, body = before, _text(text, clauses[start:])  # the end says nothing about a note that nobody asks for
    if body.endswith("?"):
        if own is not None or not _addressed(clauses[0].words):
            return None
        body = body[:-1]
    if own is None and body:
        tail = request(f"remember: {body}")  # a property at the end of the statement
        if tail is not None and tail.content:
            about.append(_About(True, tail))
            body = tail.content
    if not body and own is None and (_THIS | _ALONE).isdisjoint(word for clause in clauses for word in clause.words):
        return None
    asked = _merged([found.sets for found in about if found.sets is not None])
    return replace(asked, content=sentence(body))


def _inside(text: str) -> Request | None:
    """Return a request in the middle of a message: "When I am back, remember that I owe Ada tea". Nothing is cut."""
    clauses = _clauses(text)
    if not clauses or is_question(text):
        return None
    for number, clause in enumerate(clauses[1:], 1):
        lead = _lead(text, clause)
        said = lead[0] if lead is not None else _said(clause.words) if _by_words(clause.words) else None
        if said is not None and said.keeps:
            before = [_properties(other.words) for other in clauses[:number] if len(other.words) <= SHORT_CLAUSE]
            return replace(_merged([sets for sets in (said.sets, *before) if sets is not None]), content=sentence(text))
    return None


def _opens(text: str, clauses: Sequence[_Clause]) -> bool:
    """Say whether a request begins with one of these clauses, after clauses of filler words."""
    first = next((clause for clause in clauses if not _VOCABULARY.issuperset(clause.words)), None)
    return first is not None and (_lead(text, first) is not None or request(text[first.start : first.end]) is not None)


def _joined(text: str, clause: _Clause) -> tuple[_Clause, _About] | None:
    """Part a clause from a request that follows it without a mark: "… and I want you to remember that"."""
    found = list(_WORD.finditer(text, clause.start, clause.end)) if clause.words != ("",) else []
    at = next((i for i in range(len(found) - 1, 1, -1) if clause.words[i] in ("and", "but", "so", "und", "aber")), 0)
    tail = clause.words[at + 1 :]
    if not at or not tail or _set("you please remember bitte dir").isdisjoint(tail) or not _VOCABULARY.issuperset(tail):
        return None
    said = _said(tail)
    return (_Clause(clause.start, found[at].start(), "", clause.words[:at]), said) if said.keeps else None


def _text(text: str, clauses: Sequence[_Clause]) -> str:
    """Return the text of clauses, with the mark that ends a sentence and without one that only joins clauses."""
    if not clauses:
        return ""
    last = clauses[-1]
    after = text[last.end : last.end + len(last.mark)]
    return text[clauses[0].start : last.end].strip() + (after if after[:1] in tuple(".!?…)") else "")


def _from_end(text: str, clauses: Sequence[_Clause], embedder: TextEmbedder | None) -> tuple[int, list[_About]]:
    """Return where the clauses about the note at the end begin. Filler clauses belong to them only before one."""
    kept, found, at = len(clauses), list[_About](), len(clauses)
    while at > 1 and (about := _about(text, clauses[at - 1], embedder)) is not None:
        at -= 1
        if about:
            found.append(_claimed(about, clauses[at].words))
        if about or (found and clauses[at].mark.startswith(("?", ":"))):  # "Got that? Keep it.", "Scope: …"
            kept = at
    return kept, found


def _claimed(about: _About, words: Sequence[str]) -> _About:
    """Read "that is just for this chat" after a statement as a request to keep it so long."""
    sets = about.sets
    stays = not _set("only inside within stays stay remain remains leave alone nowhere nur").isdisjoint(words)
    claims = sets is not None and (
        sets.private or sets.reach in ("conversation", "account") or (sets.reach == "workspace" and stays)
    )
    present = not _THIS.isdisjoint(words) and _set("was had did went war waren").isdisjoint(words)
    return replace(about, keeps=True) if claims and present else about


def _from_start(text: str, clauses: Sequence[_Clause], embedder: TextEmbedder | None) -> tuple[int, list[_About]]:
    """Return where the clauses about the note at the start end. A colon after one of them ends them."""
    kept, found, at = 0, list[_About](), 0
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


def _about(text: str, clause: _Clause, embedder: TextEmbedder | None) -> _About | None:
    """Return what a clause says about the note: nothing if it is filler; None if it is part of a statement."""
    if _VOCABULARY.issuperset(clause.words):
        return _said(clause.words)
    if _refers(clause.words) and (said := _said(clause.words)).keeps:
        return said
    if _lead(text, clause) is not None or request(text[clause.start : clause.end]) is not None:
        return None
    if _asks(clause.words) or (clause.mark.startswith("?") and not _addressed(clause.words)):
        return None
    return _by_example(text[clause.start : clause.end].strip(), clause.words, embedder)


def _by_words(words: Sequence[str]) -> bool:
    return _VOCABULARY.issuperset(words) or _refers(words)


def _refers(words: Sequence[str]) -> bool:
    """Say whether a clause asks to keep "it" in some way: "remember that for a little while"."""
    for i, word in enumerate(words[:-1]):
        if word not in _VOCABULARY:
            return False
        if word in _KEEP and words[i + 1] in _THIS:
            return i + 2 == len(words) or words[i + 2] in _WAYS
    return False


_WAYS = _set("for in at until till as across during within only just forever when while by with on under fur bis als")


def _lead(text: str, clause: _Clause) -> tuple[_About, int] | None:
    """Return the words about the note before "that", or before what follows the verb; and where they end."""
    found = list(_WORD.finditer(text, clause.start, clause.end))
    words = [_folded(m[0]) for m in found]
    known = next((i for i, word in enumerate(words) if word not in _VOCABULARY), len(words))
    for i, word in enumerate(words[: known + 1]):
        if word in _LINKS and i and (said := _said(tuple(words[: i + 1]))).keeps:
            return said, found[i].end()
    verb = next((i for i, word in enumerate(words) if word not in _POLITE), len(words))
    if clause.mark.startswith(":") and known < len(words) and verb < known and words[verb] in _KEEP:
        return _said(tuple(words[: verb + 1])), found[verb].end()  # "store the name of my cat: Tom"
    for i, word in enumerate(words[:known]):
        down = word == "down" and i and words[i - 1] in ("jot", "note")
        if (word in _ALONE or down) and i + 1 < len(words) and i and (said := _said(tuple(words[: i + 1]))).keeps:
            return said, found[i].end()
    return None


def _announced(clauses: Sequence[_Clause], before: Sequence[_About]) -> bool:
    """Say whether properties before the statement make it a request: "Just in this chat: …", "Short-term: …"."""
    said = _merged([about.sets for about in before if about.sets is not None])
    if not (said.reach or said.lifetime is not None or said.private):
        return False
    only = {"only", "just", "nur", "bloss", "solely", "purely"}.intersection(w for c in clauses for w in c.words)
    return bool(only) or clauses[-1].mark.startswith((":", "—", "–", "-"))


def _marked(clauses: Sequence[_Clause], after: Sequence[_About]) -> bool:
    """Say whether the end of a statement names a tier or owner, set apart: "… — workspace only", "… (just for you)"."""
    said = _merged([about.sets for about in after if about.sets is not None])
    if not (said.reach or said.private):
        return False
    apart = clauses[0].mark.startswith(("(", "—", "–", "-"))
    return apart or not _set("only just scope level nur").isdisjoint(w for clause in clauses[1:] for w in clause.words)


def _addressed(words: Sequence[str]) -> bool:
    return words[0] in ("can", "could", "would", "will", "please", "kannst", "konntest", "wurdest", "bitte", "hey")


def _asks(words: Sequence[str]) -> bool:
    """Say whether a clause begins as a question does: "do you remember …", "what …"."""
    known = [word for word in words if word not in ("and", "so", "ok", "okay", "hey", "und", "also", "please", "bitte")]
    if not known or known[0] not in _ASKS:
        return False
    return known[:2] not in (["do", "not"], ["do", "remember"], ["have", "this"], ["have", "it"], ["is", "it"])


def _said(words: tuple[str, ...]) -> _About:
    """Return what words about notes say."""
    return _About(_keeps(words), _properties(words))


def _keeps(words: Sequence[str]) -> bool:
    known, joined = set(words), f" {' '.join(words)} "
    told = {"you", "should"} <= known or {"you", "need"} <= known  # "what you should remember: …"
    if (_asks(words) and not told) or words[0] in ("then", "dann") or _tells(words):
        return False
    negated = not _NOT.isdisjoint(known)
    for i, word in enumerate(words):
        before, after = words[i - 1] if i else "", words[i + 1 :]
        if word in _FORGET and before not in _SPEAKERS:
            return negated
        if word in _LOSE and negated:
            return True
        if word in _COUNTS and before not in _SPEAKERS and _set("me us on").isdisjoint(after[:1]):
            return not negated
        noun = before in _set("the a an my your of in on") and _properties(words) is None  # "here is the log"
        if (word in _KEEP and before not in _SPEAKERS and not noun) or (word == "remembered" and "if you " in joined):
            return not negated
        if word in _HOLD and before not in _SPEAKERS and _holds(word, after):
            return not negated
    if {"you", "know"} <= known and not known.isdisjoint(_set("should need must want")):
        return not negated and words.index("you") < words.index("know")
    return not negated and any(phrase in joined for phrase in _PHRASES["keep"])


def _tells(words: Sequence[str]) -> bool:
    """Say whether a clause tells what somebody does, and asks nobody: "I told him to remember it"."""
    wishes = "you" in words or "du" in words or not _set("want need wish").isdisjoint(words[1:2])
    return words[0] in _SPEAKERS and not wishes


def _holds(verb: str, after: Sequence[str]) -> bool:
    """Say whether "keep it", "put that in your notes" are about a note; "keep it short" is not."""
    if not _HELD.isdisjoint(after) or (verb in ("file", "tuck", "pin") and not _THIS.isdisjoint(after)):
        return True
    if verb not in ("keep", "hold", "hang"):
        return False
    if _THIS.isdisjoint(after):
        return bool(after) and after[0] in ("for", "until", "till")
    busy = _set("short brief simple up going clean low quiet way coming calm me us you")
    return busy.isdisjoint(after[: 2 if after[0] in _THIS else 1]) or "term" in after


def _properties(words: Sequence[str]) -> Request | None:
    """Return the tier, lifetime, owner and importance that words about notes name; None if they name none."""
    known, joined = set(words), f" {' '.join(words)} "
    negated = not _NOT.isdisjoint(known)

    def has(*sets: frozenset[str]) -> bool:
        return all(not known.isdisjoint(some) for some in sets)

    def says(name: str) -> bool:
        return any(phrase in joined for phrase in _PHRASES[name])

    found = Request("")
    anywhere = has(_set("matter regardless irrespective egal")) and (has(_PLACES) or has(_set("where wo")))
    if anywhere or has(_EVERYWHERE) or has(_ALL, _PLACES):
        found = replace(found, reach="account")
    elif (
        (has(_TALKS) and not has(_set("all every each next future later upcoming other alle allen nachsten")))
        or says("talk")
        or "scratchpad" in known
        or has(_set("until till bis once when wenn sobald"), _set("done finish finished over ends end fertig vorbei"))
    ):
        beyond = has(_set("beyond after past outside hinaus nach"))
        found = replace(found, reach="" if beyond and not negated else "conversation")
    elif has(_set("channel topic thread kanal thema")) and has(_ONLY):
        found = replace(found, reach="channel")
    elif has(_PLACES) and (has(_ONLY) or has(_set("level scope inside within"))):
        found = replace(found, reach="workspace")
    spans = has(_set("for until till within fur bis"), _set("day days week weeks fortnight tage tagen woche wochen"))
    brief = has(_set("little short brief kurze"), _set("while time bit zeit"))
    short = has(_SHORT) or has(_SPAN, _TIMES) or spans or brief or says("short")
    long = has(_LONG) or says("long")
    if found.reach == "conversation":
        found = replace(found, lifetime=Lifetime.CONVERSATION)
    elif short or long:
        found = replace(found, lifetime=Lifetime.SHORT_TERM if short or negated else Lifetime.LONG_TERM)
    if has(_PRIVATE) or {"agent", "specific"} <= known or (says("private") and " for you to " not in joined):
        found = replace(found, private=True)
    weak = has(_TRIVIAL) or (has(_RANK) and has(_set("low niedrige niedriger"))) or (has(_IMPORTANT) and negated)
    strong = has(_IMPORTANT) or (has(_RANK) and has(_set("high top hohe hoher highest")))
    if weak or strong:
        found = replace(found, importance=LOW if weak else HIGH)
    if not (has(_COUNTS) or (has(_set("track")) and has(_HOLD))):
        return found if found != Request("") else None
    conversation = {} if found.reach else {"reach": "conversation", "lifetime": Lifetime.CONVERSATION}
    return replace(found, tracking=True, **conversation)


def _merged(requests: Sequence[Request]) -> Request:
    """Return the properties of several clauses as one request; the first that names a property decides it."""
    asked = Request("")
    for other in requests:
        asked = replace(
            asked,
            reach=asked.reach or other.reach,
            lifetime=asked.lifetime if asked.lifetime is not None else other.lifetime,
            private=asked.private or other.private,
            importance=asked.importance if asked.importance is not None else other.importance,
            tracking=asked.tracking or other.tracking,
        )
    return replace(asked, lifetime=Lifetime.CONVERSATION) if asked.reach == "conversation" else asked


# Requests to forget, and questions

_REMOVE = _set("forget delete erase remove drop scrap discard vergiss losche losch streiche streich entferne")
_POLITE = _set(
    """please kindly hey ok okay also and can could would you i want to id like now just then kannst konntest du bitte
    mal und so actually oh well"""
)
_TARGET = re.compile(
    r"\s*(?:(?:about|that|of|bitte|mal|everything|anything|alles|was ich|what i|the fact|the memory|the note|the thing"
    r"|(?:said|told you|know|noted|have|stored) about|my memory|dass|über|von)\b[\s,:]*)*",
    re.IGNORECASE,
)


def _forgetting(text: str) -> str | None:
    """Return what a message wants forgotten, in words that `forgetting` does not know; None if it wants nothing so."""
    found = list(_WORD.finditer(text))
    for i, word in enumerate(found):
        name = _folded(word[0])
        if name in _REMOVE:
            rest = text[_TARGET.match(text, word.end()).end() :]  # type: ignore[union-attr]
            said = {_folded(other[0]) for other in found[i : i + 4]}
            if not _NOT.isdisjoint(said) or (name not in ("forget", "vergiss") and not _of_memory(found, i)):
                return None
            return sentence(rest).rstrip(".!?")
        if name not in _POLITE:
            return None
    return None


def _of_memory(found: Sequence[re.Match[str]], at: int) -> bool:
    """Say whether something in memory is to be removed, and not a file or a line."""
    said = {_folded(word[0]) for word in found[at + 1 : at + 8]}
    return not said.isdisjoint(
        _set("memory memories note notes fact know remember noted notiz erinnerung weisst told said")
    )


_TELL = _set("tell show give list summarise summarize recap recall describe zeig zeige nenne erzahl erzahle sag liste")


def is_question(text: str) -> bool:
    """Say whether a message asks for an answer."""
    words = [_folded(m[0]) for m in _WORD.finditer(text[:LONGEST_CLAUSE])]
    skip = (_POLITE - {"i", "you", "du"}) | _set("remind me of us mir uns")
    known = [word for word in words if word not in skip]
    if text.rstrip().endswith(("?", "？")) or not known:
        return bool(text.rstrip().endswith(("?", "？")))
    if known[0] in _ASKS or known[0] in _TELL or words[:2] == ["remind", "me"]:
        return True
    if known[0] in _set("fill bring catch update walk brief") and not {"me", "us"}.isdisjoint(words[:3]):
        return True
    wonders = known[:2] in (["i", "wonder"], ["i", "forgot"]) or known[1:2] == ["know"]
    return wonders and not _ASKS.isdisjoint(known[2:])


# The classifier


class _Linear(NamedTuple):
    """A linear classifier on an embedder's vectors."""

    labels: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: float
    weights: NDArray[np.float32]


@cache
def examples() -> dict[str, dict[str, list[str]]]:
    """Return the labelled examples, by group and label."""
    return tomllib.loads((Path(__file__).with_name("wordings.toml")).read_text("utf-8"))


_FITTED: dict[tuple[str, str], _Linear] = {}  # by the key of the embedder's model, and group


def _fitted(embedder: TextEmbedder, group: str) -> _Linear:
    """Return the classifier of a group: a ridge regression from the vectors of the examples to their labels."""
    key = (str(embedder.model.key), group)
    if key not in _FITTED:
        _FITTED[key] = _fit(embedder, group)
    return _FITTED[key]


def _fit(embedder: TextEmbedder, group: str) -> _Linear:
    labelled = [(label, text) for label, texts in examples()[group].items() for text in texts]
    labels = tuple(examples()[group])
    vectors = embedder.embed_memories([text for _, text in labelled]).astype(np.float64)
    mean = vectors.mean(axis=0)
    scale = float(np.linalg.norm(vectors - mean, axis=1).mean())
    rows = np.hstack([(vectors - mean) / scale, np.ones((len(vectors), 1))])
    wanted = np.array([[1.0 if name == label else -1.0 for name in labels] for label, _ in labelled])
    penalty = np.diag([RIDGE] * vectors.shape[1] + [RIDGE / 100])
    return _Linear(labels, mean, scale, np.linalg.solve(rows.T @ rows + penalty, rows.T @ wanted))


def label(group: str, text: str, embedder: TextEmbedder | None, ordinary: str) -> str:
    """Return the label of a text by the examples, or the ordinary label if no other is clear.

    An embedder whose floor nobody has measured is not asked: the thresholds say nothing about it.
    """
    if embedder is None or not embedder.model.floor:
        return ordinary
    try:
        fitted = _fitted(embedder, group)
        vector = (embedder.embed_memories([text])[0] - fitted.mean) / fitted.scale
    except EmbedderError:
        return ordinary
    scores = dict(zip(fitted.labels, (np.append(vector, 1.0) @ fitted.weights).tolist(), strict=True))
    best = max(scores, key=lambda name: scores[name])
    clear = scores[best] >= LEAST and scores[best] - scores[ordinary] >= MARGIN
    return best if clear else ordinary


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


def _by_example(text: str, words: Sequence[str], embedder: TextEmbedder | None) -> _About | None:
    """Return what a clause says about the note by the examples; None if it is part of a statement.

    A clause that asks to keep something speaks of "it", or to "you".
    """
    if len(words) < 2 or any(word.isdigit() for word in words) or not _GERMAN.isdisjoint(words):
        return None
    found = label("clauses", text, embedder, "content")
    if found == "content" or not _SPEAKERS.isdisjoint(words[:1]):
        return None
    named, refers = _properties(words), not _THIS.isdisjoint(words)
    if found == "keep":
        return _About(True, named) if refers or not ({"you", "your"} | _KEEP).isdisjoint(words) else None
    return _About(
        found == "long_term" and refers, _merged([_PROPERTIES[found], *([named] if named is not None else [])])
    )
