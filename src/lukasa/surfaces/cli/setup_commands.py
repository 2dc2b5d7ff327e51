"""Commands about memory specs and the embedding model: spec, model, embed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import click

from lukasa.app import Settings, model_status, pull_model
from lukasa.model.errors import InvalidInput, ModelUnavailable, SpecError
from lukasa.service.workspace import Workspace
from lukasa.spec import (
    WALK,
    Difference,
    MemorySpec,
    Question,
    compose,
    diff,
    explain,
    interview,
    list_questions,
    load_preset,
    parse_spec,
    preset_names,
    preset_text,
    render_show,
)
from lukasa.spec import check as check_text
from lukasa.spec import show as show_rows
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation, read_text
from lukasa.surfaces.cli.options import CliCommand, CliGroup
from lukasa.surfaces.cli.output import Line, bad, block, colourful, dim, good, line, many, safe, table, title, warn

WRONG = 2


@click.group(cls=CliGroup, examples=("lukasa spec list", "lukasa spec explain default", "lukasa spec new -o mine.toml"))
def spec() -> None:
    """List, show, make, check and compare memory specs."""


def text_of(name_or_file: str) -> str:
    """Return the text of a preset or of a file; a name with a slash or `.toml` is a file."""
    if name_or_file in preset_names():
        return preset_text(name_or_file)
    file_like = name_or_file == "-" or "/" in name_or_file or name_or_file.endswith(".toml")
    if file_like or Path(name_or_file).is_file():
        return read_text(name_or_file)
    return preset_text(name_or_file)  # raises, and lists the presets


def _spec(name_or_file: str) -> MemorySpec:
    return parse_spec(text_of(name_or_file), file=name_or_file)


@spec.command("list", examples=("lukasa spec list",))
@pass_invocation
def spec_list(cli: Invocation) -> None:
    """List the shipped presets."""
    found = [load_preset(name) for name in preset_names()]
    data = [{"name": s.name, "title": s.title, "description": s.description} for s in found]
    rows = ((s.name, ", ".join(tier.name for tier in s.tiers), s.title) for s in found)
    cli.emit({"presets": data}, table(("name", "tiers", "title"), rows))


@spec.command(
    "show", examples=("lukasa spec show default", "lukasa spec show mine.toml", "lukasa spec show tiered --toml")
)
@click.argument("name_or_file")
@click.option("--toml", is_flag=True, help="Print the TOML file, to copy and change.")
@pass_invocation
def spec_show(cli: Invocation, name_or_file: str, toml: bool) -> None:
    """Show every value of a spec and its origin."""
    text = text_of(name_or_file)
    found = parse_spec(text, file=name_or_file)
    data = {"name": found.name, "title": found.title, "rows": plain(show_rows(found))}
    cli.emit(data | ({"toml": text} if toml else {}), block(text if toml else render_show(found)))


@spec.command("check", examples=("lukasa spec check mine.toml",))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_context
@pass_invocation
def spec_check(cli: Invocation, ctx: click.Context, files: Sequence[str]) -> None:
    """Check spec files, and print every problem."""
    found = {file: check_text(text_of(file), file) for file in files}
    data = [
        {
            "file": file,
            "ok": not problems,
            "problems": [{"key": p.key, "message": p.message, "fix": p.fix} for p in problems],
        }
        for file, problems in found.items()
    ]
    cli.emit({"ok": not any(found.values()), "files": data}, _problems(found))
    if any(found.values()):
        ctx.exit(WRONG)


def _problems(found: dict[str, list[SpecError]]) -> Iterator[Line]:
    for file, problems in found.items():
        if not problems:
            yield line(good("✓ "), f"{file} is valid")
            continue
        yield line(bad("✗ "), f"{file}: {many(len(problems), 'problem')}")
        for problem in problems:
            yield line("  ", problem.message.removeprefix(f"{file}: "))
            yield from block(problem.fix, "    ", "dim")


@spec.command("diff", examples=("lukasa spec diff default tiered", "lukasa spec diff default mine.toml"))
@click.argument("left")
@click.argument("right")
@pass_invocation
def spec_diff(cli: Invocation, left: str, right: str) -> None:
    """Compare two specs, each a preset or a file."""
    found = diff(_spec(left), _spec(right))
    cli.emit({"left": left, "right": right, "differences": plain(found)}, _differences(found, left, right))


def _differences(found: Sequence[Difference], left: str, right: str) -> Iterator[Line]:
    if not found:
        yield line(f"{left} and {right} are the same.")
    for difference in found:
        yield line(title(difference.path))
        yield from block(difference.left or "(nothing)", f"  {left}: ")
        yield from block(difference.right or "(nothing)", f"  {right}: ")


@spec.command("explain", examples=("lukasa spec explain default", "lukasa spec explain mine.toml"))
@click.argument("name_or_file")
@pass_invocation
def spec_explain(cli: Invocation, name_or_file: str) -> None:
    """Explain a spec's choices one by one, in the best order to make them."""
    found = _spec(name_or_file)
    text = explain(found)
    cli.emit({"name": found.name, "text": text, "steps": plain(WALK)}, block(text))


@spec.command(
    "new",
    examples=(
        "lukasa spec new -o mine.toml",
        "lukasa spec new --yes --set name=support --set like=anchored",
        "lukasa spec new --answers support.txt -o support.toml",
        "lukasa spec new --yes --questions",
    ),
)
@click.option("--yes", is_flag=True, help="Ask nothing; take every default.")
@click.option("-o", "--output", metavar="FILE", help="File to write [default: print the spec].")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--set", "given", multiple=True, metavar="ID=ANSWER", help="Answer a question in advance. Repeatable.")
@click.option(
    "--answers", metavar="FILE", help="Take answers from a file, a line ID=ANSWER each (-: stdin); ask nothing."
)
@click.option(
    "--questions", "listing", is_flag=True, help="List the questions with their ids and defaults; write nothing."
)
@pass_invocation
def spec_new(
    cli: Invocation,
    yes: bool,
    output: str | None,
    force: bool,
    given: Sequence[str],
    answers: str | None,
    listing: bool,
) -> None:
    """Make a spec by answering questions, each with a good default.

    The questions come in this order: anchor, typology, tiers, backend, retrieval, behaviour, discipline, audit, upkeep.
    An answer that makes no valid spec is asked again, with the reason.
    """
    if output is not None and Path(output).exists() and not force:
        raise InvalidInput(f"{output} exists already", fix="choose another name, or add --force")
    known = dict(_answer(pair) for pair in [*(_lines(answers) if answers is not None else ()), *given])
    if listing:
        found = list_questions(known)
        data = [{"id": q.id, "ask": q.ask, "default": q.default, "options": q.options} for q in found]
        cli.emit({"questions": data}, table(("id", "question", "default"), ((q.id, q.ask, q.default) for q in found)))
        return
    text = compose(known) if yes or answers is not None else _interview(known)
    if output is not None:
        _save(Path(output), text)
    told = [line(good("written "), f"to {output}"), line(dim(f"  `lukasa spec explain {output}` explains it"))]
    cli.emit({"file": output, "answers": known, "toml": text}, block(text) if output is None else told)


def _lines(source: str) -> list[str]:
    """The answers in a file; a line that is empty or begins with # is none."""
    found = [line.strip() for line in read_text(source).splitlines()]
    return [line for line in found if line and not line.startswith("#")]


def _answer(pair: str) -> tuple[str, str]:
    id, equals, answer = pair.partition("=")
    if not (id.strip() and equals):
        raise InvalidInput(f"{pair[:60]!r} is not ID=ANSWER", fix="`lukasa spec new --yes --questions` lists the ids")
    return id.strip(), answer.strip()


def _interview(known: dict[str, str]) -> str:
    """Ask on stderr, so that stdout holds only the spec; add the answers to those that are known."""
    steps = {step.section: step for step in WALK}
    current = ""

    def reply(question: Question) -> str:
        nonlocal current
        if question.id in known and question.problem is None:
            return known[question.id]
        if question.step != current:
            current = question.step
            click.echo(f"\n{steps[current].title}. {steps[current].question}", err=True)
        if question.problem is not None:
            click.echo(f"  {safe(question.problem.message)}\n  {safe(question.problem.fix)}", err=True)
        known[question.id] = _ask(question)
        return known[question.id]

    return interview(reply)


def _ask(question: Question) -> str:
    options = f" ({', '.join(question.options)})" if question.options else ""
    try:
        return str(click.prompt(f"  {question.ask}{options}", default=question.default, err=True))
    except click.Abort as abort:
        # click raises Abort for Ctrl-C and for the end of the input; only the latter is an error of the call.
        if not isinstance(abort.__context__, EOFError):
            raise
        problem = question.problem
        raise InvalidInput(
            f"the input ended at the question {question.id!r}" + (f": {problem.message}" if problem else ""),
            fix="answer all questions, or take the defaults with --yes",
        ) from None


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}", fix="choose another path") from error


BATCH = 64
COUNTED = 10_000


@click.group(cls=CliGroup, examples=("lukasa model status", "lukasa model pull"))
def model() -> None:
    """Show the models, and download the embedding model."""


@model.command("status", examples=("lukasa model status", "lukasa model status --embedder folder:/models/mine"))
@pass_invocation
def status(cli: Invocation) -> None:
    """Show whether search also works by meaning, and whether there is a language model; if not, why.

    LUKASA_CHAT names the language model. This command does not call it.
    """
    settings = cli.settings
    usable, files, chat = settings.embedder_status(), model_status(settings.models), settings.chat_status()
    data = {
        "setting": settings.embedder,
        "embedder": plain(usable),
        "default_model": plain(files),
        "second_model": plain(model_status(settings.models, second=True)),
        "chat": plain(chat),
    }
    cli.emit(data, _status(settings))


def _status(settings: Settings) -> Iterator[Line]:
    usable, files = settings.embedder_status(), model_status(settings.models)
    if usable.available:
        yield line(good("✓ "), f"{usable.name} is in use: search works by words and by meaning")
        second = model_status(settings.models, second=True)
        if settings.embedder in ("auto", "default") and second.ready:
            yield line(good("✓ "), f"{second.name} is beside it, for other languages")
        elif settings.embedder in ("auto", "default"):
            yield line(dim(f"  no model for other languages: {second.reason}; {second.fix}"))
    else:
        yield line(warn("✗ "), f"no embedding model: {usable.reason}; search works by words alone")
        yield line(dim(f"  fix: {usable.fix}"))
    yield line(
        dim(f"  setting {settings.embedder}; default model {'in' if files.ready else 'would be in'} {files.folder}")
    )
    chat = settings.chat_status()
    if chat.available:
        yield line(good("✓ "), f"{chat.name} is the language model", dim(f"  at {chat.host}" if chat.host else ""))
    else:
        without = "rules do the background work" if chat.name == "none" else "background work waits for it"
        yield line(warn("✗ "), f"no language model: {chat.reason}; {without}")
        yield line(dim(f"  fix: {chat.fix}"))


@model.command("pull", examples=("lukasa model pull", "lukasa model pull --wheel bot_brain-0.8.0-py3-none-any.whl"))
@click.option("--wheel", metavar="FILE", help="Take the model from this wheel, if there is no network.")
@pass_invocation
def pull(cli: Invocation, wheel: str | None) -> None:
    """Download the default embedding models, and check them: one for English, and one for other languages beside it.

    This is needed once, and is the only command that uses the network. The model then works offline.
    """
    folder = pull_model(cli.settings.models, progress=_tell, wheel=Path(wheel) if wheel is not None else None)
    told = [
        line(good("ready "), str(folder)),
        line(dim("  `lukasa embed` computes vectors for the entries you already have")),
    ]
    cli.emit({"folder": str(folder)}, told)


def _tell(text: str) -> None:
    click.echo(safe(text), err=True)


@click.command(cls=CliCommand, examples=("lukasa embed", "lukasa -w novel embed"))
@pass_invocation
def embed(cli: Invocation) -> None:
    """Compute the vectors that are missing.

    Needed once after `lukasa model pull`; later writes compute their own vectors. You can interrupt and repeat it.
    """
    workspace = cli.workspace()
    if workspace.ctx.embedder is None:
        usable = cli.memory.embedder_status()
        reason = usable.reason or "this workspace's spec uses none"
        raise ModelUnavailable(f"no embedding model: {reason}", fix=usable.fix or "see `lukasa workspace show --spec`")
    done = 0
    with _progress(workspace, cli.choices.no_color) as advance:
        while count := workspace.backfill(BATCH):
            done += count
            advance(count)
    told = line(good("embedded "), many(done, "text")) if done else line(good("✓ "), "every text has its vector")
    cli.emit({"embedded": done}, [told])


@contextmanager
def _progress(workspace: Workspace, no_color: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; yield the function that advances it."""
    if not (sys.stderr.isatty() and colourful(no_color)):
        yield lambda count: None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("embedding", _missing(workspace)) as bar:
        yield bar.advance


def _missing(workspace: Workspace) -> int | None:
    """Count the missing vectors; None if there are too many to count."""
    ctx = workspace.ctx
    if ctx.embedder is None:
        return 0
    model = ctx.embedder.model
    models = [model] if ctx.second is None else [model, ctx.second.model]
    found = sum(len(store.unembedded(one, COUNTED)) for store in (ctx.local, ctx.account) for one in models)
    found += len(ctx.local.unembedded_items(model, "", COUNTED)) + len(ctx.local.unembedded_passages(model, COUNTED))
    return found if found < COUNTED else None
