"""Looking things up: recall beside bare FTS5 and beside vectors alone, and the speed with 10,000 documents.

    python -m bench.lookups [--data FOLDER] [--embedder NAME] [--documents N] [--results FILE]

Recall is asked of Lukasa as a user asks it: the files are added from a folder, and `search_corpus` returns 10 passages.
Bare FTS5 and the vectors have the same passages, cut by the same rule, with the title and the headings before the text.
The questions are those of `bench.corpus`. The speed is measured on made-up documents, beside FTS5 in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from bench.corpus import (
    FIRST,
    ROOT,
    Question,
    answered,
    by_meaning,
    by_words,
    conversations,
    documentation,
    folded,
    indexed,
    questions,
)
from bench.made import questions as made_questions
from bench.made import texts
from bench.section import write_section
from bench.speed_report import grid
from lukasa import Lukasa, Workspace
from lukasa.corpus.split import DEFAULT
from lukasa.model.corpus import ParsedDocument
from lukasa.ports import Embedder
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache

SEARCHES = 300
LINES = 28  # of a made-up document
SEED = 26


def found(world: Workspace, prefix: str, question: Question) -> bool:
    """Whether one of the first passages that Lukasa returns answers a question."""
    wanted = folded(question.answer)
    return any(
        hit.document.removeprefix(prefix) == question.document and wanted in folded(hit.text)
        for hit in world.search_corpus(question.question, limit=FIRST)
    )


def recall(
    folder: Path, parsed: dict[str, ParsedDocument], asked: Sequence[Question], embedder: Embedder | None
) -> list[list[str]]:
    """Return a row for each way of searching: its name and the share of questions that are answered."""
    index, prefix = indexed(parsed, DEFAULT, embedder), f"{folder.name}/"
    ways: list[tuple[str, Callable[[Question], bool]]] = [
        ("bare FTS5 (BM25)", lambda q: answered(index, by_words(index, q.question), q)[0])
    ]
    if embedder is not None:
        known = embedder
        ways.append(("vectors alone", lambda q: answered(index, by_meaning(index, q.question, known), q)[0]))
    rows = [[name, share(asked, answers)] for name, answers in ways]
    for name, model in (("Lukasa, by words", None), ("Lukasa, by words and vectors", embedder)):
        if model is None and name.endswith("vectors"):
            continue
        with tempfile.TemporaryDirectory() as data, Lukasa.open(data, embedder=model or "none") as memory:
            world = memory.workspace()
            world.add_to_corpus(str(folder))
            while model is not None and world.backfill(1_000):
                pass
            rows.append([name, share(asked, lambda q, world=world: found(world, prefix, q))])  # type: ignore[misc]
    return rows


def share(asked: Sequence[Question], answers: Callable[[Question], bool]) -> str:
    return f"{sum(map(answers, asked)) / len(asked):.3f}"


def written(folder: Path, parsed: dict[str, ParsedDocument]) -> Path:
    """Write texts as files, for a corpus that is none yet."""
    for name, document in parsed.items():
        (folder / file_of(name)).write_text(document.body)
    return folder


def file_of(session: str) -> str:
    return f"{session.replace('/', '-')}.txt"


def speed(count: int) -> str:
    """Add made-up documents from a folder, then search them; FTS5 has the same passages."""
    lines = texts(count * LINES, SEED)
    asked = made_questions(SEARCHES, lines[:: max(1, len(lines) // SEARCHES)], SEED)
    with tempfile.TemporaryDirectory() as place, Lukasa.open(Path(place) / "data", embedder="none") as memory:
        folder = Path(place) / "made"
        folder.mkdir()
        for n in range(count):
            some = lines[n * LINES : (n + 1) * LINES]
            (folder / f"{n:06}.md").write_text(f"# Report {n}\n\n" + "\n\n".join(some) + "\n")
        megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        world = memory.workspace()
        added = spent(lambda: world.add_to_corpus(str(folder)))
        again = spent(lambda: world.add_to_corpus(str(folder)))
        passages = [p for head in everything(world) for p in world.ctx.local.passages(head)]
        world.search_corpus(asked[0])
        ours = sorted(spent(lambda q=q: world.search_corpus(q))[1] for q in asked)  # type: ignore[misc]
        bare = apsw.Connection(str(Path(place) / "bare.db"))
        bare.execute("CREATE VIRTUAL TABLE passages USING fts5(text)")
        with bare:
            bare.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", enumerate(p.indexed for p in passages))
        plain = sorted(spent(lambda q=q: fts(bare, q))[1] for q in asked)  # type: ignore[misc]
        bare.close()
    table = grid(
        ["", "CPU ms, median", "CPU ms, 95th percentile"],
        [
            [name, *(f"{1000 * one:.2f}" for one in spread(times))]
            for name, times in (("Lukasa", ours), ("FTS5", plain))
        ],
    )
    rate = f"{megabytes / added[0] * 60:,.0f} MB of text a minute ({megabytes / added[1] * 60:,.0f} MB a minute of CPU)"
    ratio = statistics.median(ours) / statistics.median(plain)
    return (
        f"{count:,} documents of {megabytes:,.1f} MB, {len(passages):,} passages, without vectors. Adding them from a "
        f"folder: {rate}. Adding them again, with nothing changed: {again[0]:.1f} s. A search by words for "
        f"{FIRST} passages, {SEARCHES} questions one by one; the ratio of the medians is {ratio:.2f}:\n\n{table}"
    )


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds that a piece of work took, and seconds of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def spread(times: Sequence[float]) -> tuple[float, float]:
    return statistics.median(times), times[int(len(times) * 0.95)]


def everything(world: Workspace) -> list[str]:
    ids: list[str] = []
    while page := world.documents(after=ids[-1] if ids else "", limit=1000):
        ids += [head.id for head in page]
    return ids


def fts(bare: apsw.Connection, question: str) -> list[object]:
    words = " OR ".join(f'"{word}"' for word in dict.fromkeys(question.lower().split()) if word.isalnum())
    return list(bare.execute("SELECT rowid, text FROM passages(?) ORDER BY rank LIMIT ?", (words, FIRST)))


INTRODUCTION = f"""## Looking things up

`python -m bench.lookups`, a part of `make bench-corpus`. *recall@{FIRST}* is the share of questions that one of the
first {FIRST} passages answers: it is of the right document and holds the words of the answer. All ways search the same
passages. The questions about the documentation avoid the words of their answers, so words alone find few of them.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of LoCoMo's form, whose sessions are a second corpus")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    embedder = open_embedder(given.embedder, default_cache())
    heads = ["", f"recall@{FIRST}"]
    parsed = documentation()
    asked = [q for q in questions() if any(folded(q.answer) in folded(p.text) for p in parsed[q.document].parts)]
    table = grid(heads, recall(ROOT / "docs", parsed, asked, embedder))
    body = f"{INTRODUCTION}\n**The documentation**, {len(asked)} questions over {len(parsed)} documents.\n\n{table}\n"
    print(body, flush=True)
    if given.data is not None:
        talks, about = conversations(given.data)
        with tempfile.TemporaryDirectory() as place:
            named = [Question(file_of(q.document), q.answer, q.question) for q in about]
            files = {file_of(name): document for name, document in talks.items()}
            folder = written(Path(place), talks)
            table = grid(heads, recall(folder, files, named, embedder))
        body += f"\n**Conversations (LoCoMo)**, {len(about)} questions over {len(talks)} documents.\n\n{table}\n"
    body += f"\n**Speed.** {speed(given.documents)}\n"
    print(body)
    if given.results:
        write_section(given.results, "lookups", body)


if __name__ == "__main__":
    main()
