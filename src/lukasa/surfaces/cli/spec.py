"""Verbs about specs: list, new, show, check, diff, explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from lukasa.model.errors import InvalidInput, SpecError
from lukasa.spec import (
    QUESTIONS,
    WALK,
    Difference,
    MemorySpec,
    Question,
    compose,
    diff,
    explain,
    load_preset,
    parse_spec,
    preset_names,
    preset_text,
    render_show,
)
from lukasa.spec import check as check_text
from lukasa.spec import show as show_rows
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Family
from lukasa.surfaces.cli.output import Line, bad, block, dim, good, line, table, title
from lukasa.surfaces.cli.session import Session, pass_session, read_text

WRONG = 2


@click.group(cls=Family, examples=("lukasa spec list", "lukasa spec explain default", "lukasa spec new -o mine.toml"))
def spec() -> None:
    """Show, make, check and compare memory specs."""


def text_of(name_or_file: str) -> str:
    """The text of a preset, or of a file; what looks like a file is one."""
    if name_or_file in preset_names():
        return preset_text(name_or_file)
    file_like = name_or_file == "-" or "/" in name_or_file or name_or_file.endswith(".toml")
    if file_like or Path(name_or_file).is_file():
        return read_text(name_or_file)
    return preset_text(name_or_file)  # which says which presets there are


def _spec(name_or_file: str) -> MemorySpec:
    return parse_spec(text_of(name_or_file), file=name_or_file)


@spec.command("list", examples=("lukasa spec list",))
@pass_session
def spec_list(session: Session) -> None:
    """List the shipped presets."""
    found = [load_preset(name) for name in preset_names()]
    data = [{"name": s.name, "title": s.title, "description": s.description} for s in found]
    rows = ((s.name, ", ".join(tier.name for tier in s.tiers), s.title) for s in found)
    session.emit({"presets": data}, table(("name", "tiers", "title"), rows))


@spec.command(
    "show", examples=("lukasa spec show default", "lukasa spec show mine.toml", "lukasa spec show tiered --toml")
)
@click.argument("name_or_file")
@click.option("--toml", is_flag=True, help="Print the file itself, to copy and change.")
@pass_session
def spec_show(session: Session, name_or_file: str, toml: bool) -> None:
    """Show every value of a spec and where it comes from."""
    text = text_of(name_or_file)
    found = parse_spec(text, file=name_or_file)
    data = {"name": found.name, "title": found.title, "rows": plain(show_rows(found))}
    session.emit(data | ({"toml": text} if toml else {}), block(text if toml else render_show(found)))


@spec.command("check", examples=("lukasa spec check mine.toml",))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_context
@pass_session
def spec_check(session: Session, ctx: click.Context, files: Sequence[str]) -> None:
    """Check spec files, and print all that is wrong with them."""
    found = {file: check_text(text_of(file), file) for file in files}
    data = [
        {
            "file": file,
            "ok": not problems,
            "problems": [{"key": p.key, "message": p.message, "fix": p.fix} for p in problems],
        }
        for file, problems in found.items()
    ]
    session.emit({"ok": not any(found.values()), "files": data}, _problems(found))
    if any(found.values()):
        ctx.exit(WRONG)


def _problems(found: dict[str, list[SpecError]]) -> Iterator[Line]:
    for file, problems in found.items():
        if not problems:
            yield line(good("✓ "), f"{file} can be used")
            continue
        yield line(bad("✗ "), f"{file}: {len(problems)} to correct")
        for problem in problems:
            yield line("  ", problem.message.removeprefix(f"{file}: "))
            yield from block(problem.fix, "    ", "dim")


@spec.command("diff", examples=("lukasa spec diff default tiered", "lukasa spec diff default mine.toml"))
@click.argument("left")
@click.argument("right")
@pass_session
def spec_diff(session: Session, left: str, right: str) -> None:
    """Compare two specs, each a preset or a file."""
    found = diff(_spec(left), _spec(right))
    session.emit({"left": left, "right": right, "differences": plain(found)}, _differences(found, left, right))


def _differences(found: Sequence[Difference], left: str, right: str) -> Iterator[Line]:
    if not found:
        yield line(f"{left} and {right} say the same.")
    for difference in found:
        yield line(title(difference.path))
        yield from block(difference.left or "(nothing)", f"  {left}: ")
        yield from block(difference.right or "(nothing)", f"  {right}: ")


@spec.command("explain", examples=("lukasa spec explain default", "lukasa spec explain mine.toml"))
@click.argument("name_or_file")
@pass_session
def spec_explain(session: Session, name_or_file: str) -> None:
    """Walk through a spec's choices, in the order they are best made."""
    found = _spec(name_or_file)
    text = explain(found)
    session.emit({"name": found.name, "text": text, "steps": plain(WALK)}, block(text))


@spec.command(
    "new", examples=("lukasa spec new -o mine.toml", "lukasa spec new --yes --set name=support --set anchor=tenant")
)
@click.option("--yes", is_flag=True, help="Ask nothing; take every default.")
@click.option("-o", "--output", metavar="FILE", help="Write it here [default: print it].")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option("--set", "given", multiple=True, metavar="ID=ANSWER", help="Answer a question beforehand. Repeatable.")
@pass_session
def spec_new(session: Session, yes: bool, output: str | None, force: bool, given: Sequence[str]) -> None:
    """Make a spec by answering questions, each with a good default."""
    if output is not None and Path(output).exists() and not force:
        raise InvalidInput(f"{output} is already there", fix="choose another name, or add --force")
    answers = dict(_answer(pair) for pair in given)
    if not yes:
        answers |= _interview(answers)
    text = compose(answers)
    if output is not None:
        _save(Path(output), text)
    told = [line(good("written "), f"to {output}"), line(dim(f"  `lukasa spec explain {output}` walks through it"))]
    session.emit({"file": output, "answers": answers, "toml": text}, block(text) if output is None else told)


def _answer(pair: str) -> tuple[str, str]:
    id, equals, answer = pair.partition("=")
    if not (id and equals):
        raise InvalidInput(f"{pair[:60]!r} is not ID=ANSWER", fix=f"ids: {', '.join(q.id for q in QUESTIONS)}")
    return id, answer


def _interview(known: dict[str, str]) -> dict[str, str]:
    """Ask on stderr, so that stdout holds nothing but the spec."""
    answers: dict[str, str] = {}
    steps = {step.section: step for step in WALK}
    current = ""
    for question in QUESTIONS:
        if question.id in known or not _relevant(question, known | answers):
            continue
        if question.step != current:
            current = question.step
            click.echo(f"\n{steps[current].title}. {steps[current].question}", err=True)
        answers[question.id] = _ask(question)
    return answers


def _relevant(question: Question, answers: dict[str, str]) -> bool:
    """A reason is only asked for where something was chosen that needs one."""
    topic = question.id.removesuffix("_reason")
    return topic == question.id or answers.get(topic, "keep") not in ("keep", "typology")


def _ask(question: Question) -> str:
    options = click.Choice(question.options) if question.options else None
    try:
        return str(click.prompt(f"  {question.ask}", default=question.default, type=options, err=True))
    except click.Abort as abort:
        # click says the same for Ctrl-C and for the end of the input; only the latter is a mistake in the call.
        if not isinstance(abort.__context__, EOFError):
            raise
        raise InvalidInput(
            f"the input ended at the question {question.id!r}", fix="answer them all, or take the defaults with --yes"
        ) from None


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}", fix="choose another place") from error
