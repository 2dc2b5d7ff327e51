"""The command `assert`: check expectations over a memory, for a person or for CI."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import click

from lukasa.model.errors import ExpectationsError, NotFound
from lukasa.model.text import escape_controls
from lukasa.read.expected import Outcome
from lukasa.service.admin import expecting
from lukasa.service.call import CallContext
from lukasa.spec.expectations import EXAMPLE, Asker, Expectations, parse
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.options import CliCommand
from lukasa.surfaces.cli.output import FAILED, Line, bad, dim, good, line

MOST_BYTES = 4_000_000


@click.command(
    "assert",
    cls=CliCommand,
    examples=(
        "lukasa assert --example > memory.expect.toml",
        "lukasa assert memory.expect.toml",
        "lukasa -w novel assert memory.expect.toml --junit memory.xml",
    ),
)
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--example", is_flag=True, help="Print a commented file to begin with.")
@click.option("--junit", metavar="PATH", help="Also write the outcomes as JUnit XML, which CI systems show.")
@pass_invocation
def assert_(cli: Invocation, file: str | None, example: bool, junit: str | None) -> None:
    """Check what this memory must know, and what it must never say.

    FILE holds expectations: what a read finds and in which place, what a context holds and what it costs, words that no
    entry or page may hold, and how many entries meet conditions. Run it after an upgrade, a change of the model or an
    import. A check changes nothing: it counts no read, notes no disclosure and asks no language model.

    Ends with code 0 if all hold, 1 if some do not, and 2 if the file is wrong. -w, --agent and --scope come before what
    the file says.
    """
    if example:
        sys.stdout.write(EXAMPLE)
        return
    if file is None:
        raise click.UsageError("name a file of expectations, or begin with --example")
    expected = parse(_read(file), file)
    if cli.choices.workspace is None and expected.workspace:
        cli.choices.workspace = expected.workspace
    outcomes = expecting.check(expected, _entering(cli, expected))
    failed = [one for one in outcomes if not one.holds]
    if junit is not None:
        _write_junit(Path(junit), file, outcomes)
    data = {"file": file, "held": len(outcomes) - len(failed), "failed": len(failed), "expectations": plain(outcomes)}
    cli.emit(data, _lines(outcomes))
    if failed:
        click.get_current_context().exit(FAILED)


def _read(file: str) -> str:
    try:
        raw = Path(file).read_bytes()
        if len(raw) > MOST_BYTES:
            raise ExpectationsError(f"larger than {MOST_BYTES:,} bytes", file=file, fix="split the file")
        return raw.decode("utf-8-sig")
    except OSError as error:
        fix = "name a file of expectations; `lukasa assert --example` prints one"
        raise ExpectationsError(error.strerror or str(error), file=file, fix=fix) from error
    except UnicodeDecodeError as error:
        raise ExpectationsError("not UTF-8 text", file=file, fix="convert it to UTF-8") from error


def _entering(cli: Invocation, expected: Expectations) -> expecting.Enter:
    """Return how to act as each asker of the file: as the owner, an agent or a grant."""
    try:
        owner = cli.owner()
    except NotFound as error:
        raise ExpectationsError(error.message, file=expected.file, key="workspace", fix=error.fix) from error
    within = expecting.bound(owner.ctx)

    def enter(asker: Asker) -> CallContext:
        agent = cli.choices.agent
        if agent is not None or not asker.grant:
            return within(Asker(agent or asker.agent, "", {**asker.scope, **cli.choices.scope}))
        access = cli.memory.access
        credential = access.credential(access.get(asker.grant), surface="cli", transport="terminal")
        return access.enter(credential, owner.name, {**asker.scope, **cli.choices.scope}).ctx

    return enter


def _lines(outcomes: Sequence[Outcome]) -> Iterator[Line]:
    for one in outcomes:
        yield line(good("holds  ") if one.holds else bad("fails  "), one.name, dim(f"  {one.kind}"))
        if not one.holds:
            yield line("         ", one.said)
            for command in one.explain:
                yield line(dim(f"         look: {command}"))
    failed = sum(not one.holds for one in outcomes)
    yield line(f"{len(outcomes) - failed} of {len(outcomes)} expectations hold.")


def _write_junit(path: Path, file: str, outcomes: Sequence[Outcome]) -> None:
    failed = sum(not one.holds for one in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": escape_controls(file), **counts})
    for one in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": f"memory.{one.kind}", "name": escape_controls(one.name), "file": file}
        )
        if not one.holds:
            fault = ElementTree.SubElement(case, "failure", {"message": escape_controls(one.said), "type": one.kind})
            fault.text = escape_controls("\n".join((one.said, *one.explain)))
    try:
        path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
    except OSError as error:
        raise ExpectationsError(
            f"{path}: {error.strerror or error}", fix="name a file in a folder that you may write to"
        ) from error
