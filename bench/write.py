"""Write quality (B13): what an observer stores that it should not, and what it misses, on a labelled set of lines.

    python -m bench.write [--data FILE] [--model] [--embedder auto] [--misses] [--json]

Each half of the set is one session, taken in and observed through the whole path: reading, cleaning, observing, gate,
dedup, resolution, store. The rules were made with half a before the eyes; half b was written with it and never looked
at while they were changed. With --model the configured model (LUKASA_CHAT) observes as well.

A row says what should become of a line: `store` (an active entry that comes from it and has the `words`), `hold`, or
`nothing`; `replaces` names words of the statement that it must have retired. `{…}` stands for what must not lie about
in a file: keys that are made up on the spot, and memory's own text.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lukasa import Lukasa, Workspace
from lukasa.model.echo import marked
from lukasa.model.entry import Entry
from lukasa.model.selection import Selection
from lukasa.model.values import Relation, State, Visibility
from lukasa.read.context import ContextDocument, ContextItem, render

DATA = Path(__file__).parent / "data" / "write_quality.jsonl"
HALVES = {"a": "tuned on", "b": "held out"}
SECRETS = {
    "sk": "sk-" + "q7W2" * 8,
    "ghp": "ghp_" + "q7W2" * 9,
    "aws": "AKIA" + "Q7W2" * 4,
    "xox": "xoxb-" + "1047294857-q7W2q7W2q7W2",
    "password": "hunter2-Correct9",
}
PIN = "4471"
JUNK = ("question", "task", "passing", "junk", "hypothetical", "quoted", "instruction")


@dataclass(frozen=True)
class Row:
    half: str
    want: str
    sort: str
    text: str
    words: str = ""
    replaces: str = ""


@dataclass
class Score:
    """Counts of one half by one observer. `misses` says which lines went wrong, and how."""

    how: str = ""
    rows: int = 0
    facts: int = 0
    junk: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    misses: list[tuple[str, str]] = field(default_factory=list)

    def wrong(self, what: str, row: Row) -> None:
        self.counts[what] += 1
        self.misses.append((what, row.text))


def rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [Row(**json.loads(line)) for line in lines if line.strip()]


def filled(text: str) -> str:
    """A line as it is said: with its secrets, and with memory's own text."""
    for name, secret in SECRETS.items():
        text = text.replace(f"{{{name}}}", secret)
    return re.sub(r"\{(echo|bare):(.+?)\}", lambda m: _own(m[2], with_marks=m[1] == "echo"), text, flags=re.DOTALL)


def _own(content: str, *, with_marks: bool) -> str:
    item = ContextItem("0199-id", "workspace", "semantic", "agent", "inform", 0.5, "2026-01-01", content)
    text = render(ContextDocument("bench", (), (item,), ()))
    return marked(text) if with_marks else text


def session(said: Sequence[Row], path: Path, name: str) -> None:
    """The lines as a session of Claude Code, an assistant's answer after each."""
    with path.open("w", encoding="utf-8") as out:
        for n, row in enumerate(said):
            for role, text, id in (("user", filled(row.text), f"m{n}"), ("assistant", "I see.", f"r{n}")):
                record = {"type": role, "sessionId": name, "uuid": id, "message": {"role": role, "content": text}}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")


def run(said: Sequence[Row], *, chat: str, embedder: str, name: str) -> Score:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "session.jsonl"
        session(said, path, name)
        with Lukasa.open(Path(place) / "data", embedder=embedder) as memory:
            world = memory.workspace("bench", preset="observer")
            world.observe(path)
            for done in memory.worker(chat=chat or None, workspace=world, kinds=("observe",)).drain():
                if done.outcome != "done":
                    raise SystemExit(f"observing failed: {done.error}")
            return score(said, world)


def score(said: Sequence[Row], world: Workspace) -> Score:
    found = Score(world.transcripts()[0].how, len(said))
    entries = _entries(world)
    for n, row in enumerate(said):
        mine = [entry for entry in entries if any(quote.message == f"m{n}" for quote in entry.evidence)]
        _judge(world, row, mine, f"m{n}", entries, found)
    kept = [entry.content for entry in entries] + [u.text for u in world.said(world.transcripts()[0].id)]
    found.counts["secrets stored"] += sum(secret in text for secret in SECRETS.values() for text in kept)
    found.counts["secrets stored"] += sum(PIN in entry.content for entry in entries)
    return found


def _entries(world: Workspace) -> list[Entry]:
    selection = Selection((world.ctx.scope("workspace"),), frozenset(Visibility))
    return world.ctx.local.find(selection, limit=10_000)


def _is_first(world: Workspace, live: Sequence[Entry], old: Entry) -> bool:
    """Whether a read shows one of these entries before an old one: it is noted as later about the same thing."""
    beside = {other.entry.id for other in world.related(old.id).rivals if other.relation is Relation.UPDATE}
    return any(entry.id in beside for entry in live)


def _repeats(world: Workspace, entry: Entry) -> bool:
    """Whether an entry is noted as another wording of one that was there before."""
    return any(other.relation is Relation.SAME for other in world.related(entry.id).rivals)


def _judge(
    world: Workspace, row: Row, mine: Sequence[Entry], message: str, entries: Sequence[Entry], found: Score
) -> None:
    own = [entry for entry in mine if entry.evidence[0].message == message]
    live = [entry for entry in own if entry.state is not State.HELD]
    if row.want == "store":
        found.facts += 1
        if not any(row.words.lower() in entry.content.lower() for entry in live):
            found.wrong("facts held" if own else "facts missed", row)
        if row.replaces:
            found.counts["supersessions"] += 1
            old = [e for e in entries if row.replaces in e.content and e.state is State.ACTIVE and e not in own]
            right = bool(live) and all(_is_first(world, live, other) for other in old)
            found.counts["supersessions right"] += right
            if not right:
                found.misses.append(("not superseded", row.text))
    elif row.want == "hold":
        found.counts["doubts"] += 1
        if live:
            found.wrong("doubts stored", row)
        elif not own:
            found.counts["doubts left out"] += 1
    elif row.sort in JUNK:
        found.junk += 1
        if live:
            found.wrong("junk stored", row)
    elif row.sort == "repeat":
        found.counts["repeats"] += 1
        if [entry for entry in live if not _repeats(world, entry)]:
            found.wrong("duplicates stored", row)
    elif row.sort == "loop":
        found.counts["loops"] += 1
        if own:
            found.wrong("loops stored", row)
    elif own:
        found.wrong("secrets' lines stored", row)


def shown(half: str, s: Score) -> str:
    c = s.counts
    return (
        f"{half} ({HALVES.get(half, '')}), {s.how}: {s.rows} lines\n"
        f"  junk stored          {c['junk stored']:3} of {s.junk}\n"
        f"  duplicates stored    {c['duplicates stored']:3} of {c['repeats']}\n"
        f"  loops stored         {c['loops stored']:3} of {c['loops']}\n"
        f"  secrets stored       {c['secrets stored']:3}\n"
        f"  facts missed         {c['facts missed']:3} of {s.facts}, and {c['facts held']} held\n"
        f"  doubts stored        {c['doubts stored']:3} of {c['doubts']}, {c['doubts left out']} left out\n"
        f"  supersessions right  {c['supersessions right']:3} of {c['supersessions']}\n"
    )


def measure(data: Path, *, chat: str = "none", embedder: str = "none") -> dict[str, Score]:
    """A score for each half of the set."""
    listed = rows(data)
    halves = sorted({row.half for row in listed})
    return {h: run([r for r in listed if r.half == h], chat=chat, embedder=embedder, name=h) for h in halves}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", action="store_true", help="let the model of LUKASA_CHAT observe as well")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--misses", action="store_true", help="list what went wrong in half a")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    results: dict[str, dict[str, Any]] = {}
    for chat in ("none", *([""] if given.model else [])):
        for half, found in measure(given.data, chat=chat, embedder=given.embedder).items():
            results[f"{half} by {found.how}"] = {**found.counts, "rows": found.rows, "facts": found.facts}
            if not given.json:
                print(shown(half, found))
                if given.misses and half == "a":
                    print("".join(f"  {what}: {text!r}\n" for what, text in found.misses))
    if given.json:
        json.dump(results, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
