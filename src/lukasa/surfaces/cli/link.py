"""`lukasa link`: another link to the page of a server that runs."""

from __future__ import annotations

import click

from lukasa.app import Settings
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.surfaces.cli.options import Verb
from lukasa.surfaces.cli.output import dim, line
from lukasa.surfaces.cli.session import Session, pass_session
from lukasa.surfaces.http import links


@click.command(cls=Verb, examples=("lukasa link", "lukasa link --port 8080", "lukasa link --json"))
@click.option("--port", type=click.IntRange(1, 65535), help="Of the server on this port [default: the one that runs].")
@pass_session
def link(session: Session, port: int | None) -> None:
    """Print another link to the page of the server that runs.

    As the one that `lukasa serve` prints, it opens the page once, within a quarter of an hour. Only who owns the data
    folder gets one.
    """
    found = links.ask(Settings.resolve(data=session.choices.data).account, port)
    if not found:
        where = "" if port is None else f" on port {port}"
        raise NotFound(f"no server runs on this memory{where}", fix="`lukasa serve` starts one, and prints a link")
    if len(found) > 1:
        ports = ", ".join(map(str, found))
        raise InvalidInput(f"{len(found)} servers run on this memory", fix=f"choose one with --port: {ports}")
    ((at, made),) = found.items()
    told = [line(made), line(dim("  the link opens once, within 15 minutes"))]
    session.emit({"url": f"http://127.0.0.1:{at}", "link": made}, told)
