"""Pure text functions shared by writing, finding and storing: folding, hashing, terms, token estimates."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from functools import cache, lru_cache

from lukasa.model.snowball import english

TOKENIZER_VERSION = 3  # of everything that is computed from texts and stored
PASSAGE = 25  # terms; a much longer text holds any word more easily, so a match in it says less

# Scripts written without spaces between words: every adjacent pair of characters becomes a term.
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
)
# Combining vowel signs and points are part of their word, although Python's \w does not match them.
_MARKS = "\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0f00-\u0fff"
# In ASCII text, every character but letters and digits separates words; apostrophes are removed.
_PLAIN = {n: None if chr(n) in "'`" else chr(n) if chr(n).isalnum() else " " for n in range(128)}
_APOSTROPHES = re.compile("['’ʼ`]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_SPACES = re.compile(r"\s+")

# Words so common that they only add noise and cost. Question words are included: a query mostly consists of them.
STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here hers him his how i if in into is it its just me more most my no
    nor not of off on once only or other our out over own same she should so some such than that the their them then
    there these they this those to too under until up very was we were what when where which while who whom whose why
    will with would you your yours im ive id hes shes theyre weve whats thats lets us""".split()
)


@cache
def _runs() -> re.Pattern[str]:
    """Match the words of a text that is not plain ASCII. Compiled on first use: most starts meet no such text."""
    return re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")


@cache
def _unspaced() -> re.Pattern[str]:
    """Match a character of a script without spaces."""
    return re.compile(rf"[{_UNSPACED}]")


def fold(text: str) -> str:
    """Normalise case, accents, width and spacing for matching words.

    Only accents are removed: other marks change the word.
    """
    if text.isascii():  # only case and spacing can differ
        return " ".join(text.lower().split())
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", bare).casefold()).strip()


@lru_cache(maxsize=8192)
def content_key(text: str) -> str:
    """The key for finding exact duplicates: a hash of the text without case, spacing and final punctuation."""
    if text.isascii():
        plain = " ".join(text.lower().split())
    else:
        plain = _SPACES.sub(" ", unicodedata.normalize("NFC", text).casefold()).strip()
    return hashlib.sha256((plain.rstrip(" .!。…") or plain).encode("utf-8")).hexdigest()


@lru_cache(maxsize=32768)
def said_key(text: str, speaker: str) -> str:
    """The duplicate key of a statement: two speakers who say "I" do not say the same."""
    key = content_key(text)
    return key if not in_first_person(text) else hashlib.sha256(f"{key}\x00{speaker}".encode()).hexdigest()


@lru_cache(maxsize=32768)
def in_first_person(text: str) -> bool:
    """Whether a text speaks of its speaker: it says I, my, we or our, in one of a few languages."""
    return not _FIRST_PERSON.isdisjoint(words(text[:_BEGINNING]))


def path_key(path: str) -> str:
    """The duplicate key of a file, made of its path.

    It equals no text's key: it begins with NUL, which no text may hold.
    """
    return hashlib.sha256(f"\x00{path}".encode()).hexdigest()


def content_hash(text: str) -> str:
    """SHA-256 of the exact bytes: it shows a flipped bit in the file even if SQLite accepts the page."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def commitment(salt: bytes, text: str) -> str:
    """A keyed hash of a text for the event log. The salt keeps anybody from guessing erased texts from the log."""
    return hmac.digest(salt, text.encode("utf-8"), "sha256").hex()


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    """Stem an English word as Snowball does. Its stemmer is slow, so words that it would not change skip it."""
    if len(word) < 3 or not word.endswith(_STEMMED) or not (word.isascii() and word.isalpha()):
        return word
    if word[-1] == "e" and "y" not in word and not word.endswith(_BEFORE_E) and not word.startswith(_APART):
        return word[:-1] if _drops_e(word) else word
    return english().stemWord(word)


# The endings that one of the stemmer's steps removes or changes; endings in e, except a plain e, are listed apart.
_STEMMED = tuple(
    "s ed ing y anci enci ogi li iti tional alism ation izer ator ogist ical ful ic al ism ion er ant ent e ll".split()
)
_BEFORE_E = tuple("icate ative alize ance ence able ible ate ive ize".split())
_APART = tuple("arsen commun emerg gener inter later organ past univers howe".split())  # these have special rules
_REGION = re.compile("[^aeiou]*[aeiou]+[^aeiou]")


def _drops_e(word: str) -> bool:
    """Whether the stemmer drops a final e: after two syllables, or after one that is not short."""
    first = _REGION.match(word)
    if first is None or first.end() == len(word):
        return False
    second = _REGION.match(word, first.end())
    if second is not None and second.end() < len(word):
        return True
    before, vowel, closing = word[-4:-3], word[-3], word[-2]
    short = before not in _VOWELS and vowel in _VOWELS and closing not in (_OPENING if before else _VOWELS)
    return not short and not word.endswith("paste")


_VOWELS, _OPENING = frozenset("aeiou"), frozenset("aeiouwx")


def words(text: str) -> list[str]:
    """Folded words in order; scripts without spaces give characters and overlapping pairs.

    Nothing is dropped or stemmed.
    """
    return list(_short_words(text)) if len(text) <= _SHORT else _words(text)


@lru_cache(maxsize=2048)
def _short_words(text: str) -> tuple[str, ...]:
    return tuple(_words(text))


def _words(text: str) -> list[str]:
    if text.isascii():
        return text.lower().translate(_PLAIN).split()
    folded = fold(text)
    if folded.isascii():
        return folded.translate(_PLAIN).split()
    out: list[str] = []
    for run in _runs().findall(_APOSTROPHES.sub("", folded)):
        if _unspaced().match(run):
            out.extend(run)
            out.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            out.append(run)
    return out


def terms(text: str) -> list[str]:
    """Index terms in order: stemmed, without stop words. A text of stop words alone keeps them as its terms."""
    return list(_short_terms(text)) if len(text) <= _SHORT else _terms(text)


_SHORT = 1000  # characters of a text whose terms are cached: a write needs them several times


@lru_cache(maxsize=2048)
def _short_terms(text: str) -> tuple[str, ...]:
    return tuple(_terms(text))


def _terms(text: str) -> list[str]:
    found = words(text)
    kept = [w for w in found if w not in STOP_WORDS] or found
    return [_stem(w) for w in kept]


def estimate_tokens(text: str) -> int:
    """The approximate number of a model's tokens: one for 4 ASCII characters, one for each other character."""
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-ascii_chars // 4) + (len(text) - ascii_chars)


def has_hidden_characters(text: str) -> bool:
    """Whether a text holds characters a reader cannot see: controls, bidi overrides, tag characters, separators."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return False
    return any(unicodedata.category(c) in _HIDDEN and c not in "\n\t" for c in text)


_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Co"})


def escape_controls(text: str) -> str:
    """Show control and format characters as escapes, so that stored text cannot control a terminal."""
    if not has_hidden_characters(text):
        return text
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _HIDDEN else c.encode("unicode_escape").decode()
        for c in text
    )


def storable(text: str) -> str:
    """Return text that can be stored: NUL and lone surrogates, which JSON allows, are replaced."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces between words."""
    return not character.isascii() and _unspaced().match(character) is not None


ONESELF = frozenset("i im ive my mine me myself".split())
OTHERS = frozenset("you your yours yourself we our ours".split())  # also "us", unless it can be the country
_FIRST_PERSON = ONESELF | frozenset(
    """we us our ours ich mich mir mein meine meinen meinem meiner wir uns unser unsere je moi mon mes nous notre
    yo mi mis nosotros nuestro io mio mia eu meu minha 我 私 僕 俺""".split()
)
_SPEAKING = ONESELF | OTHERS | frozenset("youre youve lets".split())
_BEGINNING = 1000  # characters of a text that are checked
_ENDS = frozenset("?!？！")  # inside a word they end nothing
_ASKING = re.compile(r"""[?!](?=["'”’)\]]*(?:\s|$))|[？！]""")

_LABEL = 80  # characters within which a line names its speaker
_COLONS = frozenset(":：")
# "Ann Lee: so I went", with a time before it or without: "[8 May 2023] Ann:", "8/5/23, 13:56 - Ann:", "**Ann:**".
_NAMED = re.compile(
    r"\s*(?:[\[(][^\])\n]{1,60}[\])]|\d[\d\-/:.,TZ ]{2,30})?[\s*_–-]*"
    r"(?P<name>[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2})[*_]*\s?(?::[*_]*\s|：)[*_]*\s*\S"
)
MACHINES = frozenset("assistant ai bot agent model chatgpt claude gpt gemini copilot".split())
_ROLES = {"me": "user", "human": "user", "ai": "assistant"} | {role: role for role in ("user", "assistant", "system")}
# Words before a colon that name no person.
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
# Words that name a person together with a number: "Speaker 2", but not "Incident 2042".
_NUMBERED = MACHINES.union(
    """speaker participant person user guest caller interviewer interviewee respondent player host voice man woman
    student teacher client customer patient witness panelist moderator resident passenger visitor member
    attendee""".split()
)


def speaks(text: str) -> bool:
    """Whether a text is worded as direct speech: it says I, we or you, asks, or exclaims.

    Only the beginning of a long text is checked.
    """
    beginning = text[:_BEGINNING]
    if not _SPEAKING.isdisjoint(words(beginning)):
        return True
    return asks(beginning)


def asks(text: str) -> bool:
    """Whether a text asks or exclaims. Only the beginning of a long text is checked."""
    beginning = text[:_BEGINNING]
    return not _ENDS.isdisjoint(beginning) and _ASKING.search(beginning) is not None


def speaker(text: str) -> str | None:
    """The speaker that a line of a talk names at its beginning, as in chat logs; None for a heading.

    The speaker is up to three words written as a name, or the role of a message. The caller must know whether the text
    is a line of a talk.
    """
    beginning = text[:_LABEL]
    found = None if _COLONS.isdisjoint(beginning) else _NAMED.match(beginning)
    if found is None:
        return None
    name: str = found["name"]
    if (role := _ROLES.get(name.lower())) is not None:
        return role
    parts = name.split()
    if any(part[0].isdecimal() for part in parts) and parts[0].lower() not in _NUMBERED:
        return None
    written_as_a_name = name in MACHINES or not any(part[0].islower() for part in parts)
    return name if written_as_a_name and _NOBODY.isdisjoint(words(name)) else None
