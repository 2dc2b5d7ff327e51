"""The command `lukasa tour`: a short story with real calls, in a temporary memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any

import click

from lukasa.app import DEFAULT_ACCOUNT
from lukasa.model.conversation import Conversation
from lukasa.service.entries.put import Written
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli import lines
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.options import CliCommand
from lukasa.surfaces.cli.output import Line, Lines, block, brief, dim, good, line, title
from lukasa.surfaces.cli.recall_commands import why_lines

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
WORKING = "We are polishing the first scene of chapter four right now"
QUESTION = "who is the antagonist?"
BY_MEANING = "where does the plot happen?"


@dataclass(slots=True)
class Guide:
    """Prints the tour step by step, and collects each result as data."""

    cli: Invocation
    steps: list[dict[str, Any]] = field(default_factory=list)

    def step(self, name: str, told: Lines, data: Any) -> None:
        self.steps.append({"step": name, "result": plain(data)})
        if not self.cli.choices.json:
            self.cli.emit(None, _framed(f"{len(self.steps)}. {name}", told))


def _framed(name: str, told: Lines) -> Iterator[Line]:
    yield line(title(name))
    for spans in told:
        yield line("   ", *spans)
    yield line()


@click.command(cls=CliCommand, examples=("lukasa tour", "lukasa tour --json"))
@pass_invocation
def tour(cli: Invocation) -> None:
    """Show how memory works, in a throw-away memory.

    The tour stores a few facts about a novel, gives one of them another value, ends the conversation and recalls the
    facts in a new one.
    Every line it prints is the result of a real call. It works in a temporary folder, which it removes at its end; your
    own memory is neither read nor changed.
    """
    with TemporaryDirectory(prefix="lukasa-tour-") as folder:
        with Invocation(replace(cli.choices, data=folder, database="", account_name=DEFAULT_ACCOUNT)) as throw_away:
            if not cli.choices.json:
                cli.emit(None, _opening(folder))
            _walk(throw_away)
        if not cli.choices.json:
            cli.emit(None, _next())


def _opening(folder: str) -> Iterator[Line]:
    yield line(title("A tour with a throw-away memory"), dim(f" in {folder}"))
    yield line("The tour removes it at the end. It neither reads nor changes your own memory.")
    yield line()


def _walk(cli: Invocation) -> None:
    guide = Guide(cli)
    world = cli.memory.workspace(cli.choices.workspace or WORKSPACE)
    guide.step("A workspace, with two pages; one that you have written is in every prompt", *_welcome(cli, world))
    first = world.start()
    here = world.at(conversation=first.ref_code)
    guide.step(f"Remember, in conversation {first.ref_code}", *_remember(here))
    guide.step("Correct, repeat and chatter", *_correct(here))
    guide.step("End the conversation", *_end(world, first))
    later = world.at(conversation=world.start().ref_code)
    guide.step(f'Ask in a new one: "{QUESTION}"', *_ask(later, QUESTION))
    if later.ctx.embedder is not None:
        guide.step(f'Ask by meaning alone: "{BY_MEANING}"', *_ask(later, BY_MEANING))
    guide.step("What an agent would get, and why", *_context(later))
    if cli.choices.json:
        cli.emit({"workspace": world.name, "steps": guide.steps}, ())


def _welcome(cli: Invocation, world: Workspace) -> tuple[Lines, Any]:
    world.edit_named("VOICE", "# Voice\n\nPlain and short; the villain is never described.\n")
    embedder = cli.memory.embedder_status()
    found = "by words and by meaning" if world.ctx.embedder else "by words alone"
    told = [
        line(f"{world.name}, with the spec {world.spec.name!r}"),
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
    told.insert(2, line(dim("  every workspace of the account sees it")))
    return told, [result for _, result in kept]


def _correct(here: Workspace) -> tuple[Lines, Any]:
    """State a fact, correct it, and repeat the correction."""
    told: list[Line] = []
    results: list[Written] = []
    for text in (FIRST_THOUGHT, CORRECTION, SAME_AGAIN):
        result = here.put("workspace", text, importance=0.8, tags=["antagonist"], source=SOURCE)
        results.append(result)
        told += _write("workspace", text, result)
    first = here.get(results[0].id)
    told.append(line(dim(f"{first.content!r} is still {first.state}; reads show it under the later one")))
    return told, {"writes": results, "first": first}


def _write(tier: str, text: str, result: Written) -> Iterator[Line]:
    yield line(dim(f"put {tier}: "), text)
    yield line("  ", *next(iter(lines.written(result))))
    for other in result.beside:
        yield line(dim(f"  beside {other}: {result.reason}"))


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


def _next() -> Iterator[Line]:
    """Commands for the user's own memory, which work as they stand."""
    yield line(title("Now you"), dim("  these use your own memory"))
    for command, comment in (
        ('lukasa put "A fact of your own, in a sentence"', "prints the id of the entry"),
        ('lukasa read "your question" --explain', ""),
        ('lukasa context "your task" --why', ""),
        ("lukasa list", "with the ids that `lukasa history` and `lukasa why` take"),
        ("lukasa --help", "lists every command"),
    ):
        yield line(f"   {command}", dim(f"   # {comment}" if comment else ""))
