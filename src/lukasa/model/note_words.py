"""Words about notes, in English and German: which words ask to keep something, and how long, where and for whom.

All words are folded: without case, accents and apostrophes. A clause whose words are all in the vocabulary is about the
note and not part of a statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.requests import HIGH, LOW, Request
from lukasa.model.text import fold
from lukasa.model.values import Lifetime


def bag(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(f" {' '.join(phrase.split())} " for phrase in text.split("|"))


KEEP = bag(
    """remember memorise memorize memorized memorised note jot store save record retain log stash bookmark preserve
    merk merke merken notier notiere notieren notiert speicher speichere speichern behalt behalte behalten vermerk
    vermerke vermerken einpragen einprage remembering reminder memo"""
)
ALONE = bag("remember memorise memorize merk merke")  # may stand before a statement without "that" or a mark
_HOLD = bag("keep bear hold hang have put get take make write add commit file track pin mark tuck leave")
_HELD = bag(
    """mind memory memories note notes notebook file record records list track tally count down onto kopf hinterkopf
    gedachtnis notiz notizen sinn hold scratchpad thought preference rule"""
)
THIS = bag("this that it these those following one them das dies dieses diese es folgendes folgende her him")
NOT = bag("not dont never no cannot cant nicht nie niemals without ohne kein keine keinen wont isnt doesnt")
FORGET = bag("forget vergiss vergesse vergessen")
LOSE = bag("lose lost slip verlier verliere")
_COUNTS = bag("tally count zahl zahle mitzahlen strichliste")
SPEAKERS = bag("i we he she they ive weve ich wir er sie ihr ill im id")
ASKS = bag(
    """what whats who whos whom whose where wheres when why how which do does did is are was were have has had any wer
    wen wem wo wann warum wieso wie welche welcher welches welchen weisst kennst erinnerst hast habe gibt ist sind
    hat haben"""
)
_PLACES = bag(
    "workspace workspaces project projects arbeitsbereich arbeitsbereiche arbeitsbereichen projekt projekte projekten"
)
_TALKS = bag(
    """chat chats conversation conversations session sessions talk chatting discussion dialogue dialog gesprach
    unterhaltung sitzung talking"""
)
_ALL = bag("all every each any across everywhere wherever whichever whatever alle allen aller jede jeden jedem jedes")
_EVERYWHERE = bag(
    "everywhere wherever global globally universally uberall accountwide kontoweit konto account accounts"
)
_ONLY = bag(
    """only just solely purely merely alone nur bloss lediglich allein this current present dieses diesem diesen diese
    local limited restricted confined"""
)
_SHORT = bag("shortterm temporary temporarily briefly kurzfristig vorubergehend kurzzeitig temporar")
_SPAN = bag("few couple next coming several some nachsten kommenden paar einige")
_TIMES = bag("day days week weeks fortnight hours while tage tagen woche wochen")
_LONG = bag("permanently permanent forever indefinitely longterm dauerhaft langfristig endgultig")
_PRIVATE = bag("confidence private privately yourself confidential confidentially secretly privat vertraulich")
_IMPORTANT = bag("important importantly crucial critical essential vital wichtig entscheidend")
_TRIVIAL = bag("unimportant trivial minor unwichtig nebensachlich")
_RANK = bag("priority importance prioritat wichtigkeit")
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
        """into account | on file | on record | the record show | remind me | for the record | for your records |
        future reference | for later | you should know | you to know | erinnere mich | schreib | halte fest |
        halt fest | denk daran | denk dran | denke daran | denke dran | nicht vergessen | vergiss nicht |
        fur spater | keep count | you need to know | you must know"""
    ),
}
_FILLER = bag(
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
    everything anything lasts goes runs continues remains right needs mental preference default setting local merken
    thankful noted saved stored recorded general generally"""
)
VOCABULARY = (
    _FILLER | KEEP | LOSE | _COUNTS | _HOLD | _HELD | THIS | NOT | FORGET | _PLACES | _TALKS | _ALL
    | _EVERYWHERE | _ONLY | _SHORT | _SPAN | _TIMES | _LONG | _PRIVATE | _IMPORTANT | _TRIVIAL | _RANK
    | bag("channel topic thread kanal thema remind which where irrespective egal")
)  # fmt: skip
_PAST = bag("remembered noted kept saved stored recorded")
LINKS = bag("that dass")
GERMAN = bag("der die das den dem ein eine ist sind und nicht ich du wir mit auf fur im zu von heute meine mein")
POLITE = bag(
    """please kindly hey ok okay also and can could would you i want to id like now just then kannst konntest du bitte
    mal und so actually oh well"""
)


class About(Struct, frozen=True):
    """The note that a clause asks for. `keeps` if it asks to keep something; `sets` if it names a property."""

    keeps: bool = False
    sets: Request | None = None

    def __bool__(self) -> bool:
        return self.keeps or self.sets is not None


def folded(word: str) -> str:
    return fold(word).replace("'", "").replace("’", "")


def said_about(words: tuple[str, ...]) -> About:
    """Return what words about notes say."""
    return About(_keeps(words), properties(words))


def asks(words: Sequence[str]) -> bool:
    """Say whether a clause begins as a question does: "do you remember …", "what …"."""
    known = [word for word in words if word not in ("and", "so", "ok", "okay", "hey", "und", "also", "please", "bitte")]
    if not known or known[0] not in ASKS:
        return False
    return known[:2] not in (["do", "not"], ["do", "remember"], ["have", "this"], ["have", "it"], ["is", "it"])


def _keeps(words: Sequence[str]) -> bool:
    known, joined = set(words), f" {' '.join(words)} "
    told = {"you", "should"} <= known or {"you", "need"} <= known  # "what you should remember: …"
    if (asks(words) and not told) or words[0] in ("then", "dann") or _tells(words):
        return False
    negated = not NOT.isdisjoint(known)
    for i, word in enumerate(words):
        before, after = words[i - 1] if i else "", words[i + 1 :]
        if word in FORGET and before not in SPEAKERS:
            return negated
        if word in LOSE and negated:
            return True
        if word in _COUNTS and before not in SPEAKERS and bag("me us on").isdisjoint(after[:1]):
            return not negated
        noun = before in bag("the a an my your of in on") and properties(words) is None  # "here is the log"
        if (word in KEEP and before not in SPEAKERS and not noun) or (word in _PAST and "if you " in joined):
            return not negated
        if word in _HOLD and before not in SPEAKERS and _holds(word, after):
            return not negated
        if word == "keep" and before == "to" and not after:  # "one thing to keep: …"
            return not negated
    if {"you", "know"} <= known and not known.isdisjoint(bag("should need must want")):
        return not negated and words.index("you") < words.index("know")
    return not negated and any(phrase in joined for phrase in _PHRASES["keep"])


def _tells(words: Sequence[str]) -> bool:
    """Say whether a clause tells what somebody does, and asks nobody: "I told him to remember it"."""
    wishes = "you" in words or "du" in words or not bag("want need wish like would").isdisjoint(words[1:2])
    return words[0] in SPEAKERS and not wishes


def _holds(verb: str, after: Sequence[str]) -> bool:
    """Say whether "keep it", "put that in your notes" are about a note; "keep it short" is not."""
    if not _HELD.isdisjoint(after) or (verb in ("file", "tuck", "pin") and not THIS.isdisjoint(after)):
        return True
    if verb not in ("keep", "hold", "hang"):
        return False
    if THIS.isdisjoint(after):
        return bool(after) and after[0] in ("for", "until", "till")
    busy = bag("short brief simple up going clean low quiet way coming calm me us you")
    return busy.isdisjoint(after[: 2 if after[0] in THIS else 1]) or "term" in after


def properties(words: Sequence[str]) -> Request | None:
    """Return the tier, lifetime, owner and importance that words about notes name; None if they name none."""
    known, joined = set(words), f" {' '.join(words)} "
    if " into account " in joined:
        known.discard("account")
    negated = not NOT.isdisjoint(known)

    def has(*sets: frozenset[str]) -> bool:
        return all(not known.isdisjoint(some) for some in sets)

    def says(name: str) -> bool:
        return any(phrase in joined for phrase in _PHRASES[name])

    found = Request("")
    anywhere = has(bag("matter regardless irrespective egal")) and (has(_PLACES) or has(bag("where wo")))
    if anywhere or has(_EVERYWHERE) or has(_ALL, _PLACES):
        found = replace(found, reach="account")
    elif (
        (has(_TALKS) and not has(bag("all every each next future later upcoming other alle allen nachsten")))
        or says("talk")
        or "scratchpad" in known
        or has(
            bag("until till bis once when wenn sobald"),
            bag("done finish finished over ends end fertig vorbei"),
        )
    ):
        beyond = has(bag("beyond after past outside hinaus nach"))
        found = replace(found, reach="" if beyond and not negated else "conversation")
    elif has(bag("channel topic thread kanal thema")) and has(_ONLY):
        found = replace(found, reach="channel")
    elif has(_PLACES) and (has(_ONLY) or has(bag("level scope inside within"))):
        found = replace(found, reach="workspace")
    spans = has(bag("for until till within fur bis"), bag("day days week weeks fortnight tage tagen woche wochen"))
    brief = has(bag("little short brief kurze"), bag("while time bit zeit"))
    short = has(_SHORT) or has(_SPAN, _TIMES) or spans or brief or says("short")
    long = has(_LONG) or says("long")
    if found.reach == "conversation":
        found = replace(found, lifetime=Lifetime.CONVERSATION)
    elif short or long:
        found = replace(found, lifetime=Lifetime.SHORT_TERM if short or negated else Lifetime.LONG_TERM)
    if has(_PRIVATE) or {"agent", "specific"} <= known or (says("private") and " for you to " not in joined):
        found = replace(found, private=True)
    weak = has(_TRIVIAL) or (has(_RANK) and has(bag("low niedrige niedriger"))) or (has(_IMPORTANT) and negated)
    strong = has(_IMPORTANT) or (has(_RANK) and has(bag("high top hohe hoher highest")))
    if weak or strong:
        found = replace(found, importance=LOW if weak else HIGH)
    if not (has(_COUNTS) or (has(bag("track")) and has(_HOLD))):
        return found if found != Request("") else None
    conversation = {} if found.reach else {"reach": "conversation", "lifetime": Lifetime.CONVERSATION}
    return replace(found, tracking=True, **conversation)


def merged(requests: Sequence[Request]) -> Request:
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
