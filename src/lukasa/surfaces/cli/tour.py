"""Verb: tour. A short story told with real calls; everything shown is what they returned."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import click

from lukasa.model.conversation import Conversation
from lukasa.model.entry import Entry
from lukasa.model.text import content_key
from lukasa.service.entries.put import Written
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.context import why_lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import Line, Lines, block, brief, dim, good, line, title
from lukasa.surfaces.cli.session import Session, pass_session

WORKSPACE = "tour"
SOURCE = "tour"

PREFERENCE = "I prefer short answers with one concrete example"
FACTS = (
    "The novel takes place in Vell, a harbour city built on chains",
    "Ilse keeps the lighthouse and is the narrator's older sister",
    "Chapter three ends when the archive burns down",
)
FIRST_THOUGHT = "The villain of the novel is called Malachar"
CORRECTION = "The villain of the novel is called Vexis"
SAME_AGAIN = "the villain of the novel is called VEXIS."
TOO_SHORT = "ok, thanks"
WORKING = "We are polishing the first scene of chapter four right now"
QUESTION = "who is the antagonist?"
BY_MEANING = "where does the plot happen?"


@dataclass(slots=True)
class Guide:
    """Tells the story step by step, and keeps what happened as data."""

    session: Session
    steps: list[dict[str, Any]] = field(default_factory=list)

    def step(self, name: str, told: Lines, data: Any) -> None:
        self.steps.append({"step": name, "result": plain(data)})
        if not self.session.choices.json:
            self.session.emit(None, _framed(f"{len(self.steps)}. {name}", told))


def _framed(name: str, told: Lines) -> Iterator[Line]:
    yield line(title(name))
    for spans in told:
        yield line("   ", *spans)
    yield line()


@click.command(cls=Verb, examples=("lukasa tour", "lukasa tour --fresh", "lukasa --data ./try tour"))
@click.option("--fresh", is_flag=True, help="First forget what an earlier tour remembered.")
@pass_session
def tour(session: Session, fresh: bool) -> None:
    """See it work: a guided tour in a workspace of its own.

    It remembers a few things about a novel, corrects one, ends the conversation and recalls them in a new one.
    Everything it prints is the result of a real call. The workspace is called tour unless --workspace says otherwise.
    """
    guide = Guide(session)
    world = session.memory.workspace(session.choices.workspace or WORKSPACE)
    if fresh:
        guide.step("Forget the earlier tour", *_forget(world))
    guide.step("A workspace, with two pages that are always loaded", *_welcome(session, world))
    first = world.start()
    here = world.at(conversation=first.ref_code)
    guide.step(f"Remember, in conversation {first.ref_code}", *_remember(here))
    guide.step("Correct, repeat and chatter", *_correct(here))
    guide.step("End the conversation", *_end(world, first))
    second = world.start()
    later = world.at(conversation=second.ref_code)
    guide.step(f'Ask in a new one: "{QUESTION}"', *_ask(later, QUESTION))
    if later.ctx.embedder is not None:
        guide.step(f'Ask by meaning alone: "{BY_MEANING}"', *_ask(later, BY_MEANING))
    guide.step("What an agent would get, and why", *_context(later))
    for talk in (first, second):
        world.archive(talk.ref_code)
    if session.choices.json:
        session.emit({"workspace": world.name, "steps": guide.steps}, ())
    else:
        session.emit(None, _next(session, world))


def _forget(world: Workspace) -> tuple[Lines, Any]:
    gone: list[Entry] = []
    while found := [e for tier in ("workspace", "account") for e in world.entries(tier, limit=1000, source=SOURCE)]:
        for entry in found:  # the end of a correction brings back what it had corrected: that has its turn next
            world.forget(entry.id, "a fresh tour was asked for")
        gone += found
    return [line(good("forgotten "), brief(entry.content, 70)) for entry in gone] or [line("nothing to forget")], gone


def _welcome(session: Session, world: Workspace) -> tuple[Lines, Any]:
    embedder = session.memory.embedder_status()
    found = "by words and by meaning" if world.ctx.embedder else "by words alone"
    told = [
        line(f"{world.name}, with the spec {world.spec.name!r}, in {session.memory.settings.data}"),
        *(line(f"{page.name}: {brief(_first_line(page.body))}", dim(f"  {page.tier}")) for page in world.named()),
        line(f"embedding model: {embedder.name if world.ctx.embedder else 'none'}; memory is found {found}"),
    ]
    if world.ctx.embedder is None:
        told.append(line(dim(f"{embedder.reason}; {embedder.fix}")))
    data = {"workspace": world.ctx.info, "named": [page.name for page in world.named()], "embedder": embedder}
    return told, data


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].lstrip("# ")


def _remember(here: Workspace) -> tuple[Lines, Any]:
    kept: list[tuple[str, Written]] = [
        ("account", here.put("account", PREFERENCE, kind="procedural", importance=0.9, source=SOURCE))
    ]
    kept += [("workspace", here.put("workspace", fact, importance=0.6, source=SOURCE)) for fact in FACTS]
    kept.append(("conversation", here.put("conversation", WORKING, source=SOURCE)))
    told: list[Line] = []
    for tier, result in kept:
        told += _write(tier, result.entry.content if result.entry else "", result)
    told.insert(2, line(dim(f"  every workspace of yours sees it; `lukasa forget {kept[0][1].id}` takes it out")))
    return told, [result for _, result in kept]


def _correct(here: Workspace) -> tuple[Lines, Any]:
    """Say something, change one's mind, say it again, and say nothing much."""
    told: list[Line] = []
    results: list[Written] = []
    texts = [CORRECTION, SAME_AGAIN, TOO_SHORT]
    retired = _retired(here)
    if retired is None:
        texts.insert(0, FIRST_THOUGHT)
    for text in texts:
        result = here.put("workspace", text, importance=0.8, tags=["antagonist"], source=SOURCE)
        results.append(result)
        told += _write("workspace", text, result)
    retired = retired or _retired(here)
    if retired is not None:
        told.append(line(dim(f"the first thought is kept as history: {retired.content!r} is {retired.state}")))
    return told, {"writes": results, "retired": retired}


def _retired(here: Workspace) -> Entry | None:
    """The first thought as an earlier run left it: replaced, by something that is still there."""
    key = content_key(FIRST_THOUGHT)
    found = here.entries("workspace", limit=1000, everything=True, source=SOURCE)
    active = {entry.id for entry in found if entry.state == "active"}
    return next((e for e in found if content_key(e.content) == key and e.superseded_by in active), None)


def _write(tier: str, text: str, result: Written) -> Iterator[Line]:
    yield line(dim(f"put {tier}: "), text)
    yield line("  ", *next(iter(lines.written(result))))
    for old in result.replaces:
        yield line(dim(f"  it replaces {old}: {result.reason}"))


def _end(world: Workspace, talk: Conversation) -> tuple[Lines, Any]:
    ended = world.end(talk.ref_code)
    told = f": entries gone with it: {ended.dropped}, archived: {ended.archived}"
    return [line(good("ended "), ended.conversation.ref_code, told)], ended


def _ask(later: Workspace, question: str) -> tuple[Lines, Any]:
    found = later.read(question, profile="lean")
    return lines.recall(found, explain=False), found


def _context(later: Workspace) -> tuple[Lines, Any]:
    found = later.context(QUESTION)
    return [*block(str(found), "| ", "dim"), line(), *why_lines(found, later)], found


def _next(session: Session, world: Workspace) -> Iterator[Line]:
    """Commands that work as they stand, with ids of this tour."""
    folder = f" --data {shlex.quote(session.choices.data)}" if session.choices.data else ""
    call = f"lukasa{folder} -w {shlex.quote(world.name)}"
    newest = world.entries("workspace", limit=1)
    yield line(title("Now you"))
    yield line(f'   {call} put "Your own fact, in a sentence"')
    yield line(f'   {call} read "your question" --explain')
    if newest:
        yield line(f'   {call} why "{QUESTION}" {newest[0].id}')
        yield line(f"   {call} history {newest[0].id}")
    yield line(f'   {call} context "your task" --why')
    yield line(
        f"   lukasa{folder} workspace create NAME", dim("   a workspace of your own; lukasa --help shows the rest")
    )
