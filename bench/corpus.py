"""How passages should be cut: recall over sizes and overlaps, by words alone, by meaning alone, and by both.

    python -m bench.corpus [--data FOLDER] [--embedder NAME] [--results FILE]

The corpus is the documentation of this repository. `bench/data/corpus_questions.jsonl` has questions about it in other
words than its headings, each with the document that answers it and a few words of the answer. A passage answers a
question if it is of that document and holds these words. With `--data`, the conversations of LoCoMo are a second
corpus, a session a document, with every fourth of its questions: a passage answers one if it holds the turn that does.

Large passages hold an answer more easily, and cost a reader more. So two figures are told: the share of questions that
one of the first 10 passages answers, and the share that the first 6,000 characters of passages answer. The size is
chosen on the questions with an even number and told on those with an odd one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw
import numpy as np

from bench.dataset import load, rows
from bench.section import write_section
from bench.speed_report import grid
from lukasa.corpus.split import DEFAULT, Sizes, split
from lukasa.model.corpus import ParsedDocument, Passage
from lukasa.ports import Embedder
from lukasa.providers.documents import FileParser
from lukasa.providers.embed import open_embedder
from lukasa.providers.embed.cached import default_cache

ROOT = Path(__file__).parents[1]
QUESTIONS = Path(__file__).parent / "data" / "corpus_questions.jsonl"
TRIED = (
    Sizes(most=500, overlap=0),
    Sizes(most=500, overlap=100),
    Sizes(most=800, overlap=100),
    Sizes(most=1_100, overlap=0),
    DEFAULT,
    Sizes(most=1_100, overlap=300),
    Sizes(most=1_600, overlap=150),
    Sizes(most=2_400, overlap=150),
)
FIRST = 10
READ = 6_000  # characters
_RANKED = 60
_FUSED = 60  # k of reciprocal rank fusion


@dataclass(frozen=True)
class Question:
    document: str
    answer: str
    question: str


@dataclass(frozen=True)
class Index:
    """The passages of a corpus, and what finds them."""

    passages: Sequence[Passage]
    words: apsw.Connection
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]] | None


def questions() -> list[Question]:
    return [Question(**row) for row in rows(QUESTIONS)]


def documentation() -> dict[str, ParsedDocument]:
    """The pages of the documentation by their path."""
    parser, docs = FileParser(), ROOT / "docs"
    paths = sorted(docs.rglob("*.md"))
    return {str(path.relative_to(docs)): parser.parse(path.read_bytes(), name=path.name) for path in paths}


def conversations(folder: Path) -> tuple[dict[str, ParsedDocument], list[Question]]:
    """The sessions of a data set as texts, and questions that one turn answers."""
    parser, data = FileParser(), load(folder)
    said: dict[str, list[str]] = {}
    turns: dict[str, tuple[str, str]] = {}
    for turn in data.corpus:
        line = f"{turn['speaker']}: {turn['text']}"
        said.setdefault(turn["session_id"], []).append(line)
        turns[turn["id"]] = turn["session_id"], line
    corpus = {name: parser.parse("\n\n".join(lines).encode(), name=f"{name}.txt") for name, lines in said.items()}
    single = [query for query in data.queries if len(query["evidence"]) == 1 and query["evidence"][0] in turns]
    return corpus, [Question(*turns[query["evidence"][0]], query["text"]) for query in single[::4]]


def folded(text: str) -> str:
    return " ".join(text.replace("`", "").split()).casefold()


def shown(passage: Passage, titles: dict[str, str]) -> str:
    """What is indexed of a passage: the title of its document, its headings and its text."""
    above = dict.fromkeys((titles[passage.document], *passage.headings))
    return " > ".join(above) + "\n" + passage.text


def indexed(corpus: dict[str, ParsedDocument], sizes: Sizes, embedder: Embedder | None, headings: bool = True) -> Index:
    titles = {name: document.title for name, document in corpus.items()}
    passages = [p for name, doc in corpus.items() for p in split(doc, document_id=name, version=1, sizes=sizes)]
    texts = [shown(passage, titles) if headings else passage.text for passage in passages]
    words = apsw.Connection(":memory:")
    words.execute("CREATE VIRTUAL TABLE passages USING fts5(text)")
    with words:
        words.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", enumerate(texts))
    return Index(passages, words, None if embedder is None else np.asarray(embedder.embed_memories(texts)))


def by_words(index: Index, question: str) -> list[int]:
    """Bare FTS5: any of the words, by its own BM25."""
    asked = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", question.lower())))
    found = index.words.execute("SELECT rowid FROM passages(?) ORDER BY rank LIMIT ?", (asked, _RANKED))
    return [int(number) for (number,) in found]


def by_meaning(index: Index, question: str, embedder: Embedder) -> list[int]:
    assert index.vectors is not None
    scores = index.vectors @ np.asarray(embedder.embed_query(question))
    return [int(at) for at in np.argsort(-scores)[:_RANKED]]


def fused(rankings: Iterable[Sequence[int]]) -> list[int]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, number in enumerate(ranking, 1):
            scores[number] = scores.get(number, 0.0) + 1 / (_FUSED + place)
    return sorted(scores, key=lambda number: -scores[number])


def answered(index: Index, ranking: Sequence[int], question: Question) -> tuple[bool, bool]:
    """Whether the first passages answer, and whether the first characters do."""
    wanted, characters = folded(question.answer), 0
    first = read = False
    for place, number in enumerate(ranking):
        passage = index.passages[number]
        characters += len(passage.text)
        if passage.document == question.document and wanted in folded(passage.text):
            first, read = first or place < FIRST, read or characters <= READ
    return first, read


def measured(index: Index, asked: Sequence[Question], embedder: Embedder | None) -> dict[str, list[tuple[bool, bool]]]:
    out: dict[str, list[tuple[bool, bool]]] = {"words": [], "meaning": [], "both": []}
    for question in asked:
        words = by_words(index, question.question)
        out["words"].append(answered(index, words, question))
        if embedder is not None:
            meaning = by_meaning(index, question.question, embedder)
            out["meaning"].append(answered(index, meaning, question))
            out["both"].append(answered(index, fused((words, meaning)), question))
    return {way: results for way, results in out.items() if results}


def rate(results: Sequence[tuple[bool, bool]], at: int, half: int) -> str:
    chosen = [result[at] for result in results[half::2]]
    return f"{sum(chosen) / len(chosen):.3f}"


def report(corpus: dict[str, ParsedDocument], asked: Sequence[Question], embedder: Embedder | None) -> str:
    lines: list[list[str]] = []
    for sizes, headings in [*((sizes, True) for sizes in TRIED), (DEFAULT, False)]:
        index = indexed(corpus, sizes, embedder, headings)
        results = measured(index, asked, embedder)
        name = f"{sizes.most:,} / {sizes.overlap}{'' if headings else ', text alone'}"
        for half, told in ((0, "chosen on"), (1, "told on")):
            rates = [rate(results[way], at, half) for way in results for at in (0, 1)]
            lines.append([name, told, f"{len(index.passages):,}", *rates])
        print(lines[-2], lines[-1], sep="\n", flush=True)
    ways = ["words", "meaning", "both"] if embedder else ["words"]
    heads = [f"{way}, {figure}" for way in ways for figure in (f"first {FIRST}", f"{READ:,} characters")]
    table = grid(["size / overlap", "half", "passages", *heads], lines)
    return f"{len(asked)} questions over {len(corpus):,} documents.\n\n{table}\n"


INTRODUCTION = f"""## Passages of a corpus

`make bench-corpus`. Size and overlap are in characters. *Words* is bare FTS5, *meaning* the cosine of the default
model, *both* their ranks fused. *First {FIRST}* is the share of questions that one of the first {FIRST} passages
answers; the other figure counts passages until they have {READ:,} characters. The title and the headings are indexed
with each passage, except in the last rows. The default was chosen on every second question, and is told on the others.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of LoCoMo's form, whose sessions are added to the corpus")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    corpus, asked = documentation(), questions()
    gone = [q for q in asked if not any(folded(q.answer) in folded(p.text) for p in corpus[q.document].parts)]
    if gone:
        print(f"{len(gone)} questions are left out: the documentation has changed, and their answers are gone: {gone}")
    embedder = open_embedder(given.embedder, default_cache())
    said = report(corpus, [question for question in asked if question not in gone], embedder)
    body = f"{INTRODUCTION}\n**The documentation.** {said}"
    if given.data is not None:
        body += f"\n**Conversations (LoCoMo).** {report(*conversations(given.data), embedder)}"
    print(body)
    if given.results:
        write_section(given.results, "corpus", body)


if __name__ == "__main__":
    main()
