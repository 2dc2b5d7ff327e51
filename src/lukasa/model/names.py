"""Find the names of people and things in texts, without a model and in any language, and who is named together.

A capital says most where a language writes only names with one. A word at the beginning of a sentence has a capital
anyway, and German nouns have one everywhere. So a word counts as a name by what all texts say of it: whether it also
has its capital within sentences, or is also written small, what stands before and after it, and who speaks. Scripts
without capitals show names by honorifics, quotation marks and repetition.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from lukasa.model.text import STOP_WORDS, fold

NameKind = Literal["person", "thing"]

CAPITAL = r"[^\W\d_a-zß-öø-ÿ][\w'’\-]*"  # a word that begins with a capital
RUN = re.compile(rf"{CAPITAL}(?: {CAPITAL})*")
OTHER_NAME = re.compile(
    r"(?i:\b(?:aka|a\.k\.a\.|also known as|alias|nicknamed|nickname is|goes by|everyone calls (?:her|him)))"
    rf",? [\"“'‘]?({CAPITAL}(?: {CAPITAL})*)"
)
NO_NAMES = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december""".split()
)


class Text(Struct, frozen=True):
    """A text to look for names in. `speaker` says "I" in it, and `things` are what it rests on, such as documents."""

    id: str
    text: str
    speaker: str = ""
    things: tuple[str, ...] = ()


class Name(Struct, frozen=True):
    """A person or a thing: its fullest name, every form of it, and the texts that name it, in their order."""

    key: str
    name: str
    kind: NameKind
    forms: tuple[str, ...]
    texts: tuple[str, ...]


class NameLink(Struct, frozen=True):
    """Two names that the same texts have, by their keys, and how many texts."""

    one: str
    other: str
    texts: int


class NameIndex(Struct, frozen=True):
    """The names of some texts, those in most texts first."""

    names: tuple[Name, ...] = ()

    def find(self, name: str) -> Name | None:
        """Return the name with this key or form."""
        key = fold(name)
        return next((n for n in self.names if n.key == key or key in map(fold, n.forms)), None)

    def links(self, keys: Iterable[str] | None = None, *, least: int = 1) -> list[NameLink]:
        """Return which of these names are in the same texts, the most frequent first; of all names without keys."""
        wanted = None if keys is None else set(keys)
        here: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.names:
            if wanted is None or name.key in wanted:
                for id in name.texts:
                    here[id].append(name.key)
        pairs: Counter[tuple[str, str]] = Counter()
        for together in here.values():
            some = sorted(together[:_MOST_TOGETHER])
            pairs.update((one, other) for number, one in enumerate(some) for other in some[number + 1 :])
        found = [NameLink(*pair, count) for pair, count in pairs.items() if count >= least]
        return sorted(found, key=lambda link: (-link.texts, link.one, link.other))


_MOST_TOGETHER = 40  # names of one text; a list of hundreds says nothing about any two of them
_MOST_CHARACTERS = 4000  # of a text
_LONGEST = 60


def name_index(texts: Iterable[Text]) -> NameIndex:
    """Return the people and things that some texts name."""
    read = [_read(text) for text in texts]
    known = _Known()
    for one in read:
        known.learn(one)
    found: defaultdict[str, _Found] = defaultdict(_Found)
    for one in read:
        for spelled, person, thing in known.names_in(one):
            found[fold(spelled)].add(spelled, one.id, person, thing)
    _join(found, read)
    names = [_name(key, one) for key, one in found.items()]
    return NameIndex(tuple(sorted(names, key=lambda name: (-len(name.texts), name.key))))


# Reading one text

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[^\W_{_UNSPACED}](?:[^\W{_UNSPACED}]|['’./\-+#](?=[^\W_{_UNSPACED}]))*|[A-Za-z]\+\+")
LONGEST_CODE = 80  # a longer word is no name
_QUOTED = re.compile(r"`([^`\n]{2,40})`")
_CODE = re.compile(
    r"""^(?: [^\W_][\w.\-]*/[\w./\-]+            # a path
        | [\w\-]+\.(?:[a-z]{2,5}\d?)             # a file
        | [^\W_]+_[\w]+                          # snake_case
        | [a-z]+[A-Z]\w*                         # camelCase
        | (?:[A-Z][a-z0-9]+){2,}                 # PascalCase
        | [A-Z][A-Z0-9]+(?:[\-/]\w+)*s?          # an abbreviation, or ADR-0012
        | [a-z]+\d[\w\-]*                        # k8s
        )$""",
    re.VERBOSE,
)


def _is_code(word: str) -> bool:
    """Say whether a word is written like a path, a file, an identifier or an abbreviation."""
    return len(word) <= LONGEST_CODE and _CODE.match(word) is not None


_COMPOUND = re.compile(r"^[a-z]+(?:-[a-z0-9]+)+$")
_ENDS = frozenset('.!?:;\n•|–—"“”„«»()[]')
_PARTICLES = frozenset("de del della der den van von da di du la le bin ibn al el dos das ten ter zu zur".split())

# Asian scripts: a name before an honorific, a loanword in katakana, a title in quotation marks
_HONOURED = re.compile(
    r"([\u4e00-\u9fff]{1,4}|[\u30a1-\u30f6ー]{2,12}|[ぁ-ん]{2,6})(?:さん|様|氏|ちゃん|くん|先輩)"
    r"|([\u4e00-\u9fff]{1,3}?)(?:先生|老师|小姐|女士|经理|同学)"
    r"|([\uac00-\ud7af]{2,4}?) ?(?:씨|님)"
)
_KATAKANA = re.compile(r"[\u30a1-\u30f6ー]{3,}(?:・[\u30a1-\u30f6ー]{2,})*")
_TITLED = re.compile(r"《([^》]{1,30})》|『([^』]{1,30})』")
# Scripts with spaces and without capitals: Hebrew, Arabic, the scripts of India, Georgian, Ethiopic
_UNICAMERAL = re.compile(r"[\u0590-\u08ff\u0900-\u0dff\u10d0-\u10ff\u1200-\u139f]{3,}")


class _Word(Struct, frozen=True):
    text: str
    begins: bool  # a sentence
    joined: bool  # to the word before, by one space

    @property
    def bare(self) -> str:
        return self.text.removesuffix("'s").removesuffix("’s")

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()


class _Read(Struct, frozen=True):
    """One text in words. `sure` are names that its form gives, each with whether it is a person."""

    id: str
    speaker: str
    words: tuple[_Word, ...]
    sure: tuple[tuple[str, NameKind], ...]
    plain: tuple[str, ...]  # words of scripts without capitals
    german: bool


def _read(text: Text) -> _Read:
    said = text.text[:_MOST_CHARACTERS]
    words, end = list[_Word](), 0
    for match in _WORD.finditer(said):
        between = said[end : match.start()]
        words.append(_Word(match[0], not words or not _ENDS.isdisjoint(between), between == " "))
        end = match.end()
    small = {word.text for word in words if not word.capital}
    sure: list[tuple[str, NameKind]] = [(text.speaker, "person")] if text.speaker else []
    sure += [(thing, "thing") for thing in text.things if thing.strip()]
    sure += [(match[1].strip(), "thing") for match in _QUOTED.finditer(said) if match[1].strip()]
    plain: tuple[str, ...] = ()
    if not said.isascii():
        sure += [(match[match.lastindex or 0], "person") for match in _HONOURED.finditer(said)]
        sure += [(match[0], "thing") for match in _KATAKANA.finditer(said)]
        sure += [(match[match.lastindex or 0], "thing") for match in _TITLED.finditer(said)]
        plain = tuple(dict.fromkeys(_UNICAMERAL.findall(said)))
    return _Read(text.id, fold(text.speaker), tuple(words), tuple(sure), plain, len(small & _GERMAN) >= 2)


_GERMAN = frozenset("der die das und ist nicht ein eine einen mit für auf den dem des im zu wir ich wird sind".split())
_GERMAN_DETERMINERS = frozenset(
    """der die das den dem des ein eine einen einem einer eines mein meine meinen meiner dein deine sein seine seinen
    ihr ihre ihren unser unsere unseren kein keine keinen im am zum zur beim vom ins ans jeder jede jeden diese dieser
    diesen alle allen viele mehr pro ohne""".split()
)

# What stands beside names, in the languages that are written most
_ARTICLES = frozenset("the a an le la les el los las un une una il lo o os as het de".split())
_TITLES = frozenset(
    """mr mrs ms miss dr prof frau herr herrn señor señora sr sra monsieur madame mme signor signora sister brother
    mother father mom dad wife husband partner friend colleague boss manager teacher neighbour neighbor uncle aunt
    cousin daughter son schwester bruder mutter vater frau mann freund freundin kollege kollegin chef chefin soeur
    frère mère père amie ami hermana hermano madre padre amiga amigo""".split()
)
_TOLD = frozenset(
    "ask asks asked tell tells told call calls called email emailed met meet meets thank by frag frage".split()
)
_DOES = frozenset(
    """said says likes loves prefers wants asked asks thinks told joined left lives works owns handles knows moved
    married hates met agreed decided wrote explained mentioned speaks reviews reviewed manages leads plays studies
    maintains builds writes designs covers approves signs helps teaches learns comes goes visits buys sings cooks
    enjoys hopes plans dislikes needs used started became got went came bought visited sent thinks believes feels
    mag wohnt arbeitet sagt sagte will heißt liebt aime habite travaille dit préfère vive trabaja dice quiere prefiere
    lavora preferisce trabalha mora diz""".split()
)
_IS = frozenset(
    "is was has had will can could would may does 's ist war hat kann wird est a était es era tiene è ha".split()
)
_IN = frozenset(
    "in at to from via using uses use on into of for run runs install über mit auf en dans avec con".split()
)
_KINDS_OF_THINGS = frozenset("inc gmbh ltd corp ag api team city street server cluster project service app db".split())
_PRONOUNS = frozenset("he she his her him hers er sie ihr ihm elle il lui ella él".split())
# Words that begin many sentences of notes, and that a small memory may hold nowhere else.
_OPENERS = frozenset(
    """use ask run never always prefer prefers please remember note keep make see add check do dont set call send
    deploy review likes wants needs uses works lives today yesterday tomorrow later maybe also however although since
    yes okay thanks thank hello hi first second third finally currently recently last next every each one two three
    let lets try avoid put get give take go write read work start stop change update fix move new old many several
    two most some there here this that it we you they he she i my our your their user assistant immer nie bitte heute
    gestern morgen siehe ich du wir sie er es ihr man der die das ein eine mein meine unser unsere je tu il elle nous
    vous ils mon ma notre yo él ella nosotros mi nuestro io lui noi eu ele ela nós ik wij
    nutze verwende toujours jamais siempre nunca usa usar""".split()
)


def _is_common(key: str) -> bool:
    """Whether a word is never a name by itself: a stop word, a weekday, a month."""
    return key in STOP_WORDS or key in NO_NAMES or key.removesuffix("s") in NO_NAMES


class _Known:
    """What all texts say of their words."""

    def __init__(self) -> None:
        self.small: Counter[str] = Counter()  # texts that have a word without a capital
        self.inside: Counter[str] = Counter()  # texts that have it with a capital within a sentence
        self.nouns: Counter[str] = Counter()  # of these, with a German article before it
        self.alone: Counter[str] = Counter()  # texts that have it with a capital, and not behind another such word
        self.acts: Counter[str] = Counter()  # texts in which it begins a sentence about what it does
        self.compounds: Counter[str] = Counter()
        self.plain: Counter[str] = Counter()
        self.speakers: set[str] = set()
        self.texts = 0

    def learn(self, read: _Read) -> None:
        self.texts += 1
        if read.speaker:
            self.speakers.update((read.speaker, *read.speaker.split()))
        small, inside, nouns, alone, acts = set[str](), set[str](), set[str](), set[str](), set[str]()
        before: _Word | None = None
        for word, after in zip(read.words, (*read.words[1:], None), strict=False):
            key = fold(word.bare)
            if not word.capital:
                small.add(key)
            else:
                if not (before is not None and before.capital and word.joined):
                    alone.add(key)
                if word.begins:
                    acts.update({key} if self._acts(word, after) else ())
                else:
                    inside.add(key)
                    if read.german and before is not None and fold(before.text) in _GERMAN_DETERMINERS:
                        nouns.add(key)
            before = word
        for counter, keys in (
            (self.small, small),
            (self.inside, inside),
            (self.nouns, nouns),
            (self.alone, alone),
            (self.acts, acts),
        ):
            counter.update(keys)
        self.compounds.update(key for key in small if _COMPOUND.match(key))
        self.plain.update(read.plain)

    def is_name(self, word: _Word, after: _Word | None, *, german: bool) -> bool:
        """Whether a word with a capital is a name, or part of one."""
        key = fold(word.bare)
        if len(key) < 2 or _is_common(key) or key in _PARTICLES:
            return False
        if key in self.speakers:
            return True
        inside = self.inside[key]
        if (german or self.nouns[key]) and key in _OPENERS:
            return False
        if german or self.nouns[key]:
            seldom_a_noun = self.nouns[key] * 4 < inside if inside else self._acts(word, after)
            return not self.small[key] and seldom_a_noun
        if inside:
            return inside >= self.small[key]
        if key in _OPENERS or self.small[key] or self._small_stem(key):
            return False
        return word.bare != word.text or bool(self.acts[key])

    def _small_stem(self, key: str) -> bool:
        """Whether the word is written small with another ending: "Deploys" beside "deploy"."""
        stems = {key + "s", key + "ed", key + "ing", key.removesuffix("s"), key.removesuffix("e") + "ing"} - {key}
        return any(self.small[stem] for stem in stems)

    def _acts(self, word: _Word, after: _Word | None) -> bool:
        """Whether a word at the beginning of a sentence is followed by what one single person or thing does."""
        if after is None or not after.joined or after.capital:
            return False
        verb = fold(after.text)
        return (verb in _IS or verb in _DOES) and (verb.endswith("s") or not word.text.endswith("s"))

    def names_in(self, read: _Read) -> Iterator[tuple[str, float, float]]:
        """Give each name in a text as it is spelled, with what speaks for a person and for a thing."""
        for spelled, kind in read.sure:
            if len(spelled) <= _LONGEST:
                yield spelled, 9.0 * (kind == "person"), 5.0 * (kind == "thing")
        for plain in read.plain:
            if 3 <= self.plain[plain] <= max(3, self.texts // 10):
                yield plain, 0.0, 0.5
        people = 0.5 * any(fold(word.text) in _PRONOUNS for word in read.words)
        at = 0
        while at < len(read.words):
            word = read.words[at]
            end = self._run(read, at) if word.capital else at + 1
            if end == at + 1 and _is_code(word.text) and fold(word.text) not in STOP_WORDS:
                yield word.text, 0.0, 5.0
                at += 1
            elif not word.capital:
                if self.compounds[fold(word.text)] > 2:
                    yield word.text, 0.0, 5.0
                at += 1
            else:
                yield from self._run_names(read, at, end, people)
                at = end

    def _run(self, read: _Read, at: int) -> int:
        """Return the end of the words with capitals that follow one another, with particles between them."""
        end = at + 1
        words = read.words
        while (
            end < len(words)
            and words[end].joined
            and not words[end].begins
            and words[end - 1].bare == words[end - 1].text
        ):
            if words[end].capital:
                end += 1
            elif (
                words[end].text in _PARTICLES
                and end + 1 < len(words)
                and words[end + 1].joined
                and words[end + 1].capital
            ):
                end += 2
            else:
                break
        return end

    def _run_names(self, read: _Read, start: int, end: int, people: float) -> Iterator[tuple[str, float, float]]:
        words = read.words
        after = words[end] if end < len(words) else None
        if words[start].begins and end - start > 1 and not self._leads(words[start], words[start + 1 : end]):
            start += 1
        while start < end and _is_common(fold(words[start].bare)):
            start += 1
        while start < end and _is_common(fold(words[end - 1].bare)):
            end -= 1
        if start >= end:
            return
        if read.german and end - start > 1 and any(self.nouns[fold(w.bare)] for w in words[start:end]):
            singles = [w for w in words[start:end] if self.is_name(w, None, german=True)]
            yield from ((w.bare, people, 0.0) for w in singles)
            return
        if end - start == 1 and not self.is_name(words[start], after, german=read.german):
            return
        if fold(words[start].bare) in _TITLES and end - start > 1:
            start, people = start + 1, people + 3
        spelled = " ".join([*(w.text for w in words[start : end - 1]), words[end - 1].bare])
        if len(spelled) <= _LONGEST:
            person, thing = self._kinds(words, start, end)
            yield spelled, person + people, thing

    def _leads(self, first: _Word, rest: Sequence[_Word]) -> bool:
        """Whether the first word of a sentence belongs to the name that follows it."""
        key = fold(first.bare)
        if _is_common(key) or key in _OPENERS or self._small_stem(key):
            return False
        if self.inside[key] or self.acts[key] or key in self.speakers or key in _TITLES:
            return True
        if self.small[key]:
            return False
        # Where the rest is also named alone, the first word just began the sentence: "Yesterday Ada left".
        return not (len(rest) == 1 and self.alone[fold(rest[0].bare)])

    def _kinds(self, words: Sequence[_Word], start: int, end: int) -> tuple[float, float]:
        """Return what speaks for a person, and what for a thing: the words before, after and of the name."""
        before = fold(words[start - 1].text) if start and words[start].joined else ""
        after = fold(words[end].text) if end < len(words) and words[end].joined else ""
        keys = [fold(word.bare) for word in words[start:end]]
        person = 2.0 * (after in _DOES) + 3.0 * (before in _TITLES) + 2.0 * (before in _TOLD)
        person += 0.5 * (words[end - 1].bare != words[end - 1].text) + 0.5 * (before in ("with", "and", "und", "mit"))
        person += 1.0 * (2 <= len(keys) <= 4 and all(key.replace("-", "").isalpha() for key in keys))
        person += 9.0 * any(key in self.speakers for key in keys)
        coded = any(_is_code(word.bare) for word in words[start:end])
        thing = (
            5.0 * coded
            + 2.0 * (before in _ARTICLES)
            + 1.0 * (before in _IN)
            + 2.0 * any(key in _KINDS_OF_THINGS for key in keys)
        )
        return person, thing + 1.0 * any(character.isdigit() for key in keys for character in key)


# Putting names together


class _Found:
    """One name while it is collected."""

    def __init__(self) -> None:
        self.spellings: Counter[str] = Counter()
        self.texts: dict[str, None] = {}
        self.person = self.thing = 0.0

    def add(self, spelled: str, id: str, person: float, thing: float) -> None:
        self.spellings[spelled] += 1
        self.texts[id] = None
        self.person += person
        self.thing += thing

    def take(self, other: _Found) -> None:
        self.spellings.update(other.spellings)
        self.texts |= other.texts
        self.person += other.person
        self.thing += other.thing


def _join(found: dict[str, _Found], read: Sequence[_Read]) -> None:
    """Join a name of one word with the only longer name that holds it, as people call Marta Oliveira just Marta."""
    longer: defaultdict[str, list[str]] = defaultdict(list)
    for key in found:
        parts = key.split()
        if len(parts) > 1:
            for part in {parts[0], parts[-1]}:
                longer[part].append(key)
    for key, names in longer.items():
        if key in found and len(names) == 1 and found[names[0]].person >= found[names[0]].thing:
            found[names[0]].take(found.pop(key))


def _name(key: str, found: _Found) -> Name:
    kind: NameKind = "person" if found.person > found.thing and found.person >= 1 else "thing"
    forms = tuple(spelled for spelled, _ in found.spellings.most_common())
    fullest = max(
        (form for form in forms if fold(form) == key), key=lambda form: (found.spellings[form], form), default=key
    )
    return Name(key, fullest, kind, (fullest, *(form for form in forms if form != fullest)), tuple(found.texts))
