"""Rankings through the public API: put every turn, read with every question."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from bench.dataset import LONGEST, Dataset, Turn
from lukasa import Lukasa, Memo
from lukasa.ports import Embedder
from lukasa.spec import preset_text

BATCH = 100
LIMIT = 20
Ranking = dict[str, list[str]]


class TurnClock:
    """The time of the session being put, then a moment after the last."""

    def __init__(self) -> None:
        self.time = datetime(2020, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def told(time: str) -> datetime:
    """A time of a set, none of which says where on Earth it is meant."""
    return datetime.fromisoformat(time).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to find things: a preset, with lines of its `[retrieval]` table changed, with a model or without."""

    name: str
    preset: str = "default"
    retrieval: tuple[tuple[str, str], ...] = ()
    model: bool = True
    kind: str | None = "episodic"
    more: str = ""
    alone: bool = False  # "Ann: so I went" and nothing else: no kind, no source, no conversation, all put at one time

    def memo(self, turn: Turn) -> Memo:
        if self.alone:
            return Memo(f"{turn['speaker']}: {turn['text']}"[:LONGEST])
        return Memo(turn["text"], kind=self.kind, source=turn["speaker"])

    def spec(self) -> str:
        text = preset_text(self.preset)
        for key, value in self.retrieval:
            text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
            if count != 1:
                raise ValueError(f"no line {key!r} in preset {self.preset!r}")
        return text + self.more


def at_once(session: Sequence[Turn]) -> Iterator[list[Turn]]:
    """Turns of one moment, a batch at a time: each has its own time, so that a question about the past sees no more."""
    for _, group in groupby(session, key=lambda turn: told(turn["timestamp"])):
        turns = list(group)
        yield from (turns[at : at + BATCH] for at in range(0, len(turns), BATCH))


def ranking(
    data: Dataset, recipe: Recipe, embedder: Embedder | None, database: str = "", second: Embedder | None = None
) -> Ranking:
    """Each scope is a workspace, each session a conversation, each turn an entry by its speaker at its time; or as the
    recipe has it. Memory is in a folder, or in a new account of a PostgreSQL database."""
    clock = TurnClock()
    found: Ranking = {}
    with (
        tempfile.TemporaryDirectory() as place,
        Lukasa.open(
            place,
            database=database,
            account=place if database else None,
            embedder=(embedder if recipe.model else None) or "none",
            second_embedder=second if recipe.model else None,
            clock=clock,
        ) as memory,
    ):
        for scope in data.scopes:
            world = memory.workspace(scope, spec=recipe.spec())
            known: dict[str, str] = {}
            sessions = data.sessions(scope)
            for session in sessions:
                talk = world if recipe.alone else world.at(conversation=world.start().id)
                for turns in at_once(session):
                    clock.time = told((sessions[-1] if recipe.alone else turns)[0]["timestamp"])
                    memos = [recipe.memo(turn) for turn in turns]
                    for turn, written in zip(turns, talk.put_many("workspace", memos), strict=True):
                        known.setdefault(written.id, turn["id"])
            clock.time += timedelta(hours=1)
            for query in data.asked(scope):
                as_of = told(query["as_of"]) if query.get("as_of") else None
                hits = world.read(query["text"], tier="workspace", limit=LIMIT, count=False, as_of=as_of)
                shown = [id for hit in hits for id in (hit.id, *(one.id for one in hit.earlier))]
                found[query["id"]] = [known[id] for id in dict.fromkeys(shown) if id in known]
    return found
