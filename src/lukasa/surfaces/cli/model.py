"""Verbs about embeddings: model status, model pull, embed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import click

from lukasa.app import Settings, model_status, pull_model
from lukasa.model.errors import ModelUnavailable
from lukasa.service.workspace import Workspace
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.options import Family, Verb
from lukasa.surfaces.cli.output import Line, colourful, dim, good, line, safe, warn
from lukasa.surfaces.cli.session import Session, pass_session

BATCH = 64
COUNTED = 10_000


@click.group(cls=Family, examples=("lukasa model status", "lukasa model pull"))
def model() -> None:
    """See and fetch the embedding model."""


def _settings(session: Session) -> Settings:
    return Settings.resolve(data=session.choices.data, embedder=session.choices.embedder)


@model.command("status", examples=("lukasa model status", "lukasa model status --embedder folder:/models/mine"))
@pass_session
def status(session: Session) -> None:
    """Tell whether memory is also found by meaning, and if not, why."""
    settings = _settings(session)
    usable, files = settings.embedder_status(), model_status(settings.models)
    data = {"setting": settings.embedder, "embedder": plain(usable), "default_model": plain(files)}
    session.emit(data, _status(settings))


def _status(settings: Settings) -> Iterator[Line]:
    usable, files = settings.embedder_status(), model_status(settings.models)
    if usable.available:
        yield line(good("✓ "), f"{usable.name} is in use: memory is found by words and by meaning")
    else:
        yield line(warn("✗ "), f"no embedding model: {usable.reason}; memory is found by words alone")
        yield line(dim(f"  fix: {usable.fix}"))
    yield line(
        dim(f"  setting {settings.embedder}; default model {'in' if files.ready else 'would be in'} {files.folder}")
    )


@model.command("pull", examples=("lukasa model pull", "lukasa model pull --wheel bot_brain-0.8.0-py3-none-any.whl"))
@click.option("--wheel", metavar="FILE", help="Take it from this wheel, where there is no network.")
@pass_session
def pull(session: Session, wheel: str | None) -> None:
    """Fetch the default embedding model, once, and check it.

    It is the only command that uses the network. The model then works offline.
    """
    folder = pull_model(_settings(session).models, progress=_tell, wheel=Path(wheel) if wheel is not None else None)
    told = [line(good("ready "), str(folder)), line(dim("  `lukasa embed` computes vectors for what you already have"))]
    session.emit({"folder": str(folder)}, told)


def _tell(text: str) -> None:
    click.echo(safe(text), err=True)


@click.command(cls=Verb, examples=("lukasa embed", "lukasa -w novel embed"))
@pass_session
def embed(session: Session) -> None:
    """Compute the vectors that are still missing.

    Needed once after `lukasa model pull`; from then on every write embeds itself. Can be interrupted and repeated.
    """
    workspace = session.workspace()
    if workspace.ctx.embedder is None:
        usable = session.memory.embedder_status()
        reason = usable.reason or "this workspace's spec asks for none"
        raise ModelUnavailable(f"no embedding model: {reason}", fix=usable.fix or "`lukasa workspace show --spec`")
    done = 0
    with _progress(workspace, session.choices.no_color) as advance:
        while count := workspace.backfill(BATCH):
            done += count
            advance(count)
    told = line(good("embedded "), f"{done} texts") if done else line(good("✓ "), "every text has its vector")
    session.emit({"embedded": done}, [told])


@contextmanager
def _progress(workspace: Workspace, no_color: bool) -> Iterator[Callable[[int], None]]:
    """A bar where somebody watches, nothing elsewhere."""
    if not (sys.stderr.isatty() and colourful(no_color)):
        yield lambda count: None
        return
    with import_module("lukasa.surfaces.cli.terminal").Bar("embedding", _missing(workspace)) as bar:
        yield bar.advance


def _missing(workspace: Workspace) -> int | None:
    """How many vectors are missing; None for too many to count first."""
    ctx = workspace.ctx
    if ctx.embedder is None:
        return 0
    model = ctx.embedder.model
    found = sum(len(store.unembedded(model, COUNTED)) for store in (ctx.local, ctx.account))
    found += len(ctx.local.unembedded_items(model, "", COUNTED))
    return found if found < COUNTED else None
