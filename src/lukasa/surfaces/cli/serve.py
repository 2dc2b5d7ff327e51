"""`lukasa serve`: the page, the HTTP API and the worker, in one process on loopback."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from lukasa.app import DEFAULT_WORKSPACE
from lukasa.model.errors import InvalidInput
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import dim, good, line
from lukasa.surfaces.cli.session import Session, pass_session

DEFAULT_PORT = 7437


@click.command(
    cls=Verb,
    examples=("lukasa serve", "lukasa serve --port 8080 --no-open", "lukasa -w novel serve"),
)
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 takes any.")
@click.option("--open/--no-open", "browse", default=None, help="Open the page [default: if this is a terminal].")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--behind-tls", "public", metavar="NAME", help="Host name of a proxy in front that speaks TLS.")
@click.option("--worker/--no-worker", "work", default=True, show_default=True, help="Do background work as well.")
@pass_session
def serve(session: Session, port: int, browse: bool | None, host: str, public: str | None, work: bool) -> None:
    """Serve the page, the HTTP API and the worker on this machine.

    It prints a link that opens the page once; `lukasa link` prints another later. Clients use tokens, as `lukasa grant
    create` makes them. It goes on until it is told to stop (Ctrl-C, SIGTERM), and then finishes what is under way.
    """
    serving = _serving()
    memory = session.memory
    session.choices.workspace = session.choices.workspace or DEFAULT_WORKSPACE
    session.workspace()
    bound = serving.listen(serving.Address(host, port, public), memory)
    server = serving.Server(memory, bound, public=public, links=memory.settings.account)
    link = server.link()
    told = [line(good("serving "), link), line(dim("  the link opens once, `lukasa link` gives another; Ctrl-C stops"))]
    session.emit({"url": f"http://127.0.0.1:{server.port}", "link": link}, told)
    sys.stdout.flush()
    with ExitStack() as stack:
        if browse if browse is not None else sys.stdout.isatty():
            stack.enter_context(_opened(link, memory.settings.data / "enter.html"))
        if work:
            stack.enter_context(serving.working(memory, lambda said: click.echo(said, err=True)))
        server.run(signals=(signal.SIGINT, signal.SIGTERM))


@contextmanager
def _opened(link: str, file: Path) -> Iterator[None]:
    """Open a link by way of a private file: as an argument, the process list would show its code to everybody."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as made:
        made.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={link}"><title>Lukasa</title>\n')
    webbrowser.open(file.absolute().as_uri())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _serving() -> Any:
    try:
        return import_module("lukasa.surfaces.http.serving")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "lukasa":
            raise
        raise InvalidInput(
            f"the server needs the package {missing.name!r}", fix="pip install 'lukasa[server]'"
        ) from None
