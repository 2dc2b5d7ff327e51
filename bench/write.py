"""Write quality (B13): what the observer by rules stores, holds and leaves out, on labelled sessions.

    python -m bench.write [--embedder auto] [--model] [--results FILE] [--json]

Each session of bench/data/observer_test.txt is written as a file in its format and observed through the whole path:
reading, cleaning, observing, gate, dedup, store. The classifier is trained on other lines (bench.train_observer). The
bench prints figures and no lines, so that nobody fits a rule to a line. A second set, observer_pitfalls.jsonl, holds
secrets, memory's own text, repetitions, quotations and instructions: nothing of them may be stored. `{…}` stands there
for keys that are made up on the spot, and for memory's own text.

With --model, the configured model (LUKASA_CHAT) observes as well.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.observer_set import DATA, Session, sessions
from bench.section import write_section
from bench.speed_report import grid
from lukasa import Lukasa, Workspace
from lukasa.model.echo import marked
from lukasa.model.entry import Entry
from lukasa.model.selection import Selection
from lukasa.model.text import words
from lukasa.model.transcript import Utterance
from lukasa.model.values import State, Visibility
from lukasa.read.context import ContextDocument, ContextItem, render

PITFALLS = DATA / "observer_pitfalls.jsonl"
SECRETS = {
    "sk": "sk-" + "q7W2" * 8,
    "ghp": "ghp_" + "q7W2" * 9,
    "aws": "AKIA" + "Q7W2" * 4,
    "xox": "xoxb-" + "1047294857-q7W2q7W2q7W2",
    "password": "hunter2-Correct9",
}
PIN = "4471"
NEGATIONS = frozenset("no not never nobody nothing without dont cant wont nicht nie niemals kein keine keinen".split())
Turn = tuple[str, str]


# The four formats


def claude_code(turns: Sequence[Turn]) -> str:
    def content(role: str, text: str) -> Any:
        return text if role != "tool" else [{"type": "tool_result", "tool_use_id": "t", "content": text}]

    def record(n: int, role: str, text: str) -> dict[str, Any]:
        speaker = "assistant" if role == "assistant" else "user"
        message = {"role": speaker, "content": content(role, text)}
        return {"type": speaker, "sessionId": "bench", "uuid": f"m{n}", "message": message}

    return "".join(_line(record(n, role, text)) for n, (role, text) in enumerate(turns))


def codex(turns: Sequence[Turn]) -> str:
    def payload(role: str, text: str) -> dict[str, Any]:
        if role == "tool":
            return {"type": "function_call_output", "call_id": "1", "output": text}
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    begin = _line({"type": "session_meta", "payload": {"id": "bench", "timestamp": "2026-10-02T09:00:00Z"}})
    return begin + "".join(_line({"type": "response_item", "payload": payload(*turn)}) for turn in turns)


def messages(turns: Sequence[Turn]) -> str:
    return json.dumps([{"role": role, "content": text} for role, text in turns], ensure_ascii=False)


def chat_log(turns: Sequence[Turn]) -> str:
    return "".join(f"{role.title()}: {text}\n\n" for role, text in turns)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[Turn]], str]] = {
    "claude-code": claude_code,
    "codex": codex,
    "messages": messages,
    "chat-log": chat_log,
}


# Observing


class Observed:
    """A session after observing: its messages as they were kept, and the entries that come from them."""

    def __init__(self, said: Sequence[Utterance], entries: Sequence[Entry], how: str) -> None:
        self.texts = {utterance.id: utterance.text for utterance in said}
        self.entries, self.how = entries, how

    def quoting(self, text: str) -> list[tuple[Entry, int, int]]:
        """Return the entries that quote a message, with the span."""
        return [
            (entry, quote.start, quote.end)
            for entry in self.entries
            for quote in entry.evidence
            if self.texts.get(quote.message) == text
        ]


def observed(turns: Sequence[Turn], form: str, *, chat: str, embedder: str) -> Observed:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "session"
        path.write_text(FORMATS[form](turns), "utf-8")
        with Lukasa.open(Path(place) / "data", embedder=embedder) as memory:
            world = memory.workspace("bench", preset="observer")
            world.observe(path)
            for done in memory.worker(chat=chat or None, workspace=world, kinds=("observe",)).drain():
                if done.outcome != "done":
                    raise SystemExit(f"observing failed: {done.error}")
            (transcript,) = world.transcripts()
            return Observed(world.said(transcript.id), _entries(world), transcript.how)


def _entries(world: Workspace) -> list[Entry]:
    selection = Selection((world.ctx.scope("workspace"),), frozenset(Visibility))
    return world.ctx.local.find(selection, limit=10_000)


# Scores


class Score:
    """Counts of labelled lines by label and result, and of entries that are not as they were said."""

    def __init__(self) -> None:
        self.results: Counter[tuple[str, str]] = Counter()
        self.truncated = self.inverted = 0

    def add(self, other: Score) -> None:
        self.results.update(other.results)
        self.truncated += other.truncated
        self.inverted += other.inverted

    def of(self, label: str, *results: str) -> int:
        return sum(self.results[label, result] for result in results or ("stored", "held", "left out"))

    @property
    def lines(self) -> int:
        return self.results.total()

    @property
    def precision(self) -> float:
        stored = sum(self.of(label, "stored") for label in "fdj")
        return self.of("f", "stored") / stored if stored else 1.0

    @property
    def found(self) -> float:
        return self.of("f", "stored", "held") / max(1, self.of("f"))

    def plain(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "precision": round(self.precision, 3),
            "facts": self.of("f"),
            "facts stored": self.of("f", "stored"),
            "facts held": self.of("f", "held"),
            "junk": self.of("j"),
            "junk stored": self.of("j", "stored"),
            "junk held": self.of("j", "held"),
            "doubts": self.of("d"),
            "doubts stored": self.of("d", "stored"),
            "doubts held": self.of("d", "held"),
            "inverted": self.inverted,
            "truncated": self.truncated,
        }


def score(session: Session, after: Observed) -> Score:
    """Judge each line by the entries whose quotation ends with it: a sentence may take the one before it along."""
    found = Score()
    for message in session.messages:
        spans = list(message.spans())
        quoting = after.quoting(message.text)
        for entry, start, end in quoting:
            whole = start in [s for s, _, _ in spans] and end in [e for _, e, _ in spans]
            said = message.text[start:end]
            found.truncated += not whole or entry.content != said
            lines = [line.text for s, e, line in spans if s < end and e > start]
            found.inverted += _negations(entry.content) != _negations(" ".join(lines))
        for start, end, line in spans:
            mine = [entry for entry, _, last in quoting if start < last <= end]
            result = "left out" if not mine else "held" if all(e.state is State.HELD for e in mine) else "stored"
            found.results[line.label, result] += 1
    return found


def _negations(text: str) -> list[str]:
    return [word for word in words(text) if word in NEGATIONS]


def measure(*, chat: str = "none", embedder: str = "none", listed: Iterable[Session] = ()) -> dict[str, Score]:
    """Return the scores of all sessions, and by format and language."""
    scores: dict[str, Score] = {}
    for session in listed or sessions():
        turns = [(message.role, message.text) for message in session.messages]
        one = score(session, observed(turns, session.format, chat=chat, embedder=embedder))
        for part in ("all", session.format, session.language):
            scores.setdefault(part, Score()).add(one)
    order = ("all", *FORMATS)
    return dict(sorted(scores.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


# Pitfalls


def filled(text: str) -> str:
    """Return a line as it is said: with its secrets, and with memory's own text."""
    for name, secret in SECRETS.items():
        text = text.replace(f"{{{name}}}", secret)
    return re.sub(r"\{(echo|bare):(.+?)\}", lambda m: _own(m[2], with_marks=m[1] == "echo"), text, flags=re.DOTALL)


def _own(content: str, *, with_marks: bool) -> str:
    item = ContextItem(
        "01a1f646-2d75-7674-893f-cce59b975d74", "workspace", "semantic", "agent", "inform", 0.5, "2026-01-01", content
    )
    text = render(ContextDocument("bench", (), (item,), ()))
    return marked(text) if with_marks else text


def pitfalls(*, embedder: str = "none") -> Counter[str]:
    """Count the lines of each sort from which something was stored or held, and "secrets kept" in any text."""
    rows = [json.loads(line) for line in PITFALLS.read_text("utf-8").splitlines()]
    turns = [turn for row in rows for turn in (("user", filled(row["text"])), ("assistant", "I see."))]
    after = observed(turns, "claude-code", chat="none", embedder=embedder)
    found: Counter[str] = Counter()
    for n, row in enumerate(rows):
        mine = [entry for entry in after.entries if entry.evidence and entry.evidence[0].message == f"m{2 * n}"]
        found[row["sort"]] += bool(mine)
        found[f"{row['sort']} lines"] += 1
    kept = [entry.content for entry in after.entries] + list(after.texts.values())
    found["secrets kept"] = sum(secret in text for secret in SECRETS.values() for text in kept)
    found["secrets kept"] += sum(PIN in entry.content for entry in after.entries)
    return found


# Report


def table(scores: Mapping[str, Score]) -> str:
    head = ["", "lines", "precision", "facts stored", "stored or held", "junk held", "doubts stored", "inverted"]
    rows = [
        [
            part,
            str(s.lines),
            f"{s.precision:.3f}",
            f"{s.of('f', 'stored') / max(1, s.of('f')):.3f}",
            f"{s.found:.3f}",
            f"{s.of('j', 'held')} of {s.of('j')}",
            f"{s.of('d', 'stored')} of {s.of('d')}",
            str(s.inverted),
            str(s.truncated),
        ]
        for part, s in scores.items()
    ]
    return grid([*head, "truncated"], rows)


def traps(found: Mapping[str, int]) -> str:
    sorts = {
        "secret": "lines with a secret",
        "loop": "memory's own text",
        "repeat": "repetitions",
        "quoted": "quotations and listings",
        "instruction": "instructions",
    }
    listed = ", ".join(f"{name} {found[sort]} of {found[f'{sort} lines']}" for sort, name in sorts.items())
    return f"Stored or held of the pitfalls: {listed}; secrets kept anywhere: {found['secrets kept']}."


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--model", action="store_true", help="let the model of LUKASA_CHAT observe as well")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    runs = {"words and vectors": ("none", given.embedder), "words alone": ("none", "none")}
    if given.model:
        runs["a model"] = ("", given.embedder)
    scores = {name: measure(chat=chat, embedder=embedder) for name, (chat, embedder) in runs.items()}
    found = pitfalls(embedder=given.embedder)
    if given.json:
        plain = {name: {part: s.plain() for part, s in parts.items()} for name, parts in scores.items()}
        json.dump(plain | {"pitfalls": found}, sys.stdout, indent=2)
        return
    about = (
        "`make bench-write`. Labelled sessions of four formats in two languages, each observed through the whole path "
        "in a workspace of its own; the classifier is trained on other lines by the same hand, and its settings were "
        "chosen with these totals in view. Precision: the share of lasting statements among the stored lines."
    )
    parts = [f"Observed by {name}:\n\n{table(each)}" for name, each in scores.items()]
    text = "\n\n".join(["## Writing: what the observer stores and misses", about, *parts, traps(found)])
    print(text)
    if given.results is not None:
        write_section(given.results, "write", text)


if __name__ == "__main__":
    main()
