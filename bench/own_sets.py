"""Questions and memories of our own, from seeds: a diary, notes, exact tokens and other languages.

    python -m bench.own_sets FOLDER         write each set to a folder of its own, in the form of `bench/dataset.py`

None of them is a conversation and none comes from a published set. Each has two halves of scopes: an even scope may be
used for a choice, an odd one is only reported.

`diary`      entries of one person, one or two a day, asked by event in other words and by date in many forms
`notes`      short standalone notes, each asked for with a long passage that describes a situation
`exact`      notes that differ in an id, an error code, a path, a version, a quoted phrase or a number that is asked for
`languages`  one fact each in a dozen languages, asked in other words, in the same language and in English
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

from bench.dataset import Dataset, Turn

DATA = Path(__file__).parent / "data"
SEED = 29
DAYS, SCOPES = 150, 4
NAMES = "Ines Jorun Tadeo Wilma Oskar Priya Benno Selma Rurik Amara Levin Dunja Caspar Noor Ebba Matteo".split()
PLACES = "Halden Morra Kestrel Vinst Ardle Tornby Quill Esker Lowick Brande Sundal Perrin".split()
THINGS = (
    "umbrella|wallet|blue scarf|bicycle pump|house keys|sketchbook|thermos|library card|left glove|headphones"
    "|reading glasses|tea strainer"
).split("|")
DISHES = "lentil stew|plum cake|fish soup|mushroom risotto|apple dumplings|pea curry|walnut bread|leek pie".split("|")
SUBJECTS = "bridges|moths|old maps|glaciers|lighthouses|clocks|volcanoes|puppets|canals|kites|comets|spices".split("|")
# What a diary says, and a question about it in other words.
EVENTS = (
    ("Left my {thing} on the tram to {place} and only noticed at the door.", "Where did I forget my {thing}?"),
    ("{name} came round in the evening and we cooked {dish}.", "With whom did I make {dish}?"),
    ("Walked to {place} along the river, two hours there and back.", "When did I go on foot to {place}?"),
    ("Argued with {name} about money, we hardly spoke afterwards.", "Why were {name} and I cross with each other?"),
    ("Read a thick book on {subject} until one in the morning.", "What kept me awake about {subject}?"),
    ("Phoned {name}, who has moved to {place} for a new job.", "In which town does {name} live now?"),
    ("The car broke down near {place}; {name} towed me home.", "Who helped when the engine failed near {place}?"),
    ("Saw an exhibition about {subject} in {place}.", "Which museum show on {subject} did I visit?"),
    ("{name} has had twins, a boy and a girl.", "How many children were born to {name}?"),
    ("Bought a new {thing} for 34 crowns at the market.", "How much did I pay for the {thing}?"),
    ("Burnt the {dish} because the telephone rang.", "What went wrong with the {dish}?"),
    ("Went to the doctor in {place} because of my back.", "Which physician's town did I visit for my spine: {place}?"),
    ("Planted beans with {name} behind the shed.", "What did {name} and I put into the soil?"),
    ("Dreamt of {subject} again and woke at four.", "Which dream about {subject} woke me up?"),
)
FILLERS = (
    "Rain all day.",
    "Slept badly.",
    "Long meeting at work, nothing decided.",
    "Cold wind, bright sun.",
    "Tired but content.",
    "Did the laundry and two letters.",
    "A quiet day.",
    "Swam ten lengths before breakfast.",
    "Nothing else of note today.",
    "I keep thinking about last year.",
)
EREIGNISSE = (
    ("Habe {name} am Bahnhof von {place} abgeholt.", "Wen habe ich in {place} vom Zug geholt?"),
    ("Mit {name} {dish} gekocht und viel gelacht.", "Wer stand mit mir für {dish} am Herd?"),
    ("Auf dem Weg nach {place} einen Platten gehabt.", "Wo ist mir der Reifen kaputtgegangen, bei {place}?"),
    ("{name} hat mir ein Buch über {subject} geliehen.", "Von wem stammt das Buch über {subject}?"),
    ("In {place} den ganzen Nachmittag gewandert.", "Wann war ich zu Fuß bei {place} unterwegs?"),
    ("Streit mit {name} wegen der Rechnung.", "Weshalb waren {name} und ich verstimmt?"),
)
LEER = ("Regen.", "Schlecht geschlafen.", "Viel gearbeitet.", "Ein ruhiger Tag.", "Kalter Wind, aber Sonne.")


def _turn(scope: str, number: int, text: str, at: datetime, speaker: str = "user") -> Turn:
    time = at.isoformat()
    return {
        "id": f"{scope}/{number}",
        "scope": scope,
        "session_id": f"{scope}/{at:%Y-%m}",
        "timestamp": time,
        "speaker": speaker,
        "text": text,
    }


def _query(scope: str, number: int, text: str, evidence: list[str], category: str) -> Turn:
    return {"id": f"{scope}/q{number}", "scope": scope, "text": text, "evidence": evidence, "category": category}


def diary() -> Dataset:
    """Diaries of a person each, half a year long; the last two scopes are German."""
    turns: list[Turn] = []
    queries: list[Turn] = []
    for number in range(SCOPES):
        rng = random.Random(f"{SEED} diary {number}")
        german = number >= SCOPES // 2
        scope = f"diary-{number}"
        start = date(2024, 1, 3 + number)
        events: dict[str, list[str]] = {}
        for day in range(DAYS):
            at = datetime.combine(start + timedelta(days=day), datetime.min.time()) + timedelta(hours=21)
            if rng.random() < 0.15:
                continue
            said, question = _event(rng, EREIGNISSE if german else EVENTS)
            parts = [said, *rng.sample(LEER if german else FILLERS, 2)]
            rng.shuffle(parts)
            turns.append(_turn(scope, day, " ".join(parts), at))
            events.setdefault(question, []).append(f"{scope}/{day}")
        asked = [(question, days, "event") for question, days in events.items() if len(days) == 1]
        asked = rng.sample(asked, min(50, len(asked))) + list(
            _dated(rng, [t for t in turns if t["scope"] == scope], german)
        )
        queries += [_query(scope, n, *one) for n, one in enumerate(asked)]
    return Dataset("diary", tuple(turns), tuple(queries))


def _event(rng: random.Random, events: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """An event as the diary says it, and a question about it."""
    said, question = rng.choice(events)
    slots = {
        "name": rng.choice(NAMES),
        "place": rng.choice(PLACES),
        "thing": rng.choice(THINGS),
        "dish": rng.choice(DISHES),
        "subject": rng.choice(SUBJECTS),
    }
    return said.format(**slots), question.format(**slots)


def _dated(rng: random.Random, entries: list[Turn], german: bool) -> Iterator[tuple[str, list[str], str]]:
    """Questions by date, each with the entries of that day or week."""
    forms = (
        ("Was habe ich am {d:%d.%m.%Y} gemacht?", "Was stand am {d.day}. {month} 2024 an?", "Wie war der {d:%d.%m.%Y}?")
        if german
        else ("What did I do on {d:%d.%m.%Y}?", "What happened on {month} {d.day}, 2024?", "What was on {d:%Y-%m-%d}?")
    )
    for turn in rng.sample(entries, 20):
        d = datetime.fromisoformat(turn["timestamp"]).date()
        form = rng.choice(forms)
        yield form.format(d=d, month=_month(d, german)), [turn["id"]], "day"
    for month in range(2, 6):
        for which, first in (("first", 1), ("second", 8), ("third", 15)):
            begin = date(2024, month, first)
            days = {begin + timedelta(days=n) for n in range(7)}
            held = [t["id"] for t in entries if datetime.fromisoformat(t["timestamp"]).date() in days]
            german_which = {"first": "ersten", "second": "zweiten", "third": "dritten"}[which]
            text = (
                f"Was geschah in der {german_which} Woche im {_month(begin, True)} 2024?"
                if german
                else f"What happened in the {which} week of {_month(begin, False)} 2024?"
            )
            if held:
                yield text, held, "week"


def _month(day: date, german: bool) -> str:
    names = (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
        if german
        else "January February March April May June July August September October November December"
    )
    return names.split()[day.month - 1]


def notes() -> Dataset:
    """Notes among others of the same sort; each is asked for with the passage that was written for it."""
    pairs = [json.loads(line) for line in (DATA / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    turns: list[Turn] = []
    queries: list[Turn] = []
    for number in range(2):
        scope, rng = f"notes-{number}", random.Random(f"{SEED} notes {number}")
        texts = [pair["note"] for pair in pairs] + [_note(rng) for _ in range(200)]
        order = list(range(len(texts)))
        rng.shuffle(order)
        at = datetime(2024, 2, 1, 9)
        for place in order:
            at += timedelta(minutes=rng.choice((1, 7, 400, 2_000)))
            turns.append(_turn(scope, place, texts[place], at))
        queries += [
            _query(scope, n, pair["passage"], [f"{scope}/{n}"], "passage")
            for n, pair in enumerate(pairs)
            if n % 2 == number
        ]
    return Dataset("notes", tuple(turns), tuple(queries))


def _note(rng: random.Random) -> str:
    return rng.choice(
        (
            "{name} takes the early train to {place} on Mondays.",
            "The {thing} belongs to {name}.",
            "{dish} for eight people takes a kilo of onions.",
            "{name} collects everything about {subject}.",
            "In {place} the shops close at noon on Saturdays.",
            "The course on {subject} was moved to {place}.",
            "{name} and {other} share a garden in {place}.",
            "Never lend the {thing} to {name} again.",
        )
    ).format(
        name=rng.choice(NAMES),
        other=rng.choice(NAMES),
        place=rng.choice(PLACES),
        thing=rng.choice(THINGS),
        dish=rng.choice(DISHES).capitalize(),
        subject=rng.choice(SUBJECTS),
    )


SERVICES = "billing checkout search mailer gateway reports ledger scheduler uploads profiles".split()
FILES = "config settings routes handlers schema worker client cache parser deploy".split()
PHRASES = (
    "the quiet part of the river|no harvest without a fence|a door that opens inward|three lanterns at noon"
    "|salt before sugar|the last one out paints|never on a falling tide|hands off the red lever"
    "|a fox in every choir|measure once in the dark|the long way is dry|owls before accountants"
).split("|")


def exact() -> Dataset:
    """Notes of a project that differ in one token, and questions that name the token."""
    turns: list[Turn] = []
    queries: list[Turn] = []
    for number in range(2):
        scope, rng = f"exact-{number}", random.Random(f"{SEED} exact {number}")
        made = list(_exact(rng))
        order = list(range(len(made)))
        rng.shuffle(order)
        at = datetime(2024, 3, 1, 9)
        for place in order:
            at += timedelta(minutes=37)
            turns.append(_turn(scope, place, made[place][0], at))
        asked = [n for n, one in enumerate(made) if one[1]]
        queries += [_query(scope, n, made[n][1], [f"{scope}/{n}"], made[n][2]) for n in asked]
    return Dataset("exact", tuple(turns), tuple(queries))


def _exact(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """A note, a question that names its token, and what sort of token it is."""
    for _ in range(20):
        service, other = rng.sample(SERVICES, 2)
        code, near = f"E{rng.randrange(1000, 9999)}", f"E{rng.randrange(1000, 9999)}"
        yield f"{service} failed with {code} after the deploy; a restart helped.", f"What about error {code}?", "code"
        yield f"{other} failed with {near} after the deploy; a restart did not help.", "", ""
    for _ in range(20):
        ticket = f"{rng.choice(('OPS', 'WEB', 'DATA'))}-{rng.randrange(100, 9999)}"
        yield f"{ticket}: the {rng.choice(SERVICES)} queue is stuck.", f"What is {ticket} about?", "id"
    for _ in range(20):
        path = f"src/{rng.choice(SERVICES)}/{rng.choice(FILES)}_{rng.randrange(10, 99)}.py"
        yield f"The timeout is set in {path}, line {rng.randrange(400)}.", f"Which setting lives in {path}?", "path"
    for _ in range(20):
        major, minor, patch = rng.randrange(1, 9), rng.randrange(30), rng.randrange(30)
        library = rng.choice("quarry lathe bramble tinder".split())
        yield (
            f"{library} {major}.{minor}.{patch} broke the nightly build of {rng.choice(SERVICES)}.",
            f"What happened with {library} {major}.{minor}.{patch}?",
            "version",
        )
    for phrase in PHRASES:
        words = phrase.split()
        rng.shuffle(words)
        yield (
            f"{rng.choice(NAMES)} wrote on the wall: {phrase}, and left.",
            f'Who wrote "{phrase}" on the wall?',
            "phrase",
        )
        yield f"{rng.choice(NAMES)} wrote on the wall: {' '.join(words)}, and left.", "", ""
    for _ in range(12):
        value = f"{rng.randrange(10, 99)}.{rng.randrange(100, 999)}"
        yield f"The invoice of {rng.choice(NAMES)} was {value} crowns.", f"Whose invoice was {value}?", "number"
    for _ in range(12):
        port = rng.randrange(1024, 65535)
        yield f"The {rng.choice(SERVICES)} service listens on {port}.", f"What runs on port {port}?", "number"
    for _ in range(12):
        commit = f"{rng.getrandbits(40):010x}"
        yield f"{rng.choice(NAMES)} reverted {commit} because of the tests.", f"Why was {commit} reverted?", "id"
    for _ in range(40):
        yield f"{rng.choice(NAMES)} looked at the {rng.choice(SERVICES)} errors and found nothing.", "", ""


def languages() -> Dataset:
    """Facts in a dozen languages in one scope, each asked in its own language and in English."""
    facts = [json.loads(line) for line in (DATA / "languages.jsonl").read_text(encoding="utf-8").splitlines()]
    turns: list[Turn] = []
    queries: list[Turn] = []
    for number in range(2):
        scope, rng = f"languages-{number}", random.Random(f"{SEED} languages {number}")
        texts = [fact["text"] for fact in facts] + [_note(rng) for _ in range(60)]
        at = datetime(2024, 2, 1, 9)
        for place, text in enumerate(texts):
            at += timedelta(hours=5)
            turns.append(_turn(scope, place, text, at))
        for n, fact in enumerate(facts):
            if n % 2 == number:
                evidence = [f"{scope}/{n}"]
                queries.append(_query(scope, 2 * n, fact["own"], evidence, "own language"))
                queries.append(_query(scope, 2 * n + 1, fact["english"], evidence, "in English"))
    return Dataset("languages", tuple(turns), tuple(queries))


SETS = {"diary": diary, "notes": notes, "exact": exact, "languages": languages}


def main() -> None:
    for name, make in SETS.items():
        make().save(Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
