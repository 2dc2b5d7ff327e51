"""Commands that reach the web: discover a page or a repository, and follow feeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from lukasa.model.corpus import Watch
from lukasa.model.discovery import Discovered, Discovery
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import Invocation, pass_invocation
from lukasa.surfaces.cli.lines import joined, when
from lukasa.surfaces.cli.options import ID, CliGroup
from lukasa.surfaces.cli.output import Line, block, brief, dim, good, line, many, table, title, warn


class _DiscoverGroup(CliGroup):
    """A group whose first command may be left out: `lukasa discover URL` is `lukasa discover add URL`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        words = [word for word in options if not word.startswith("-")]
        named = bool(words) and words[0] in self.commands
        if args and not named and (words or options != args) and not {"-h", "--help"}.intersection(options):
            args = ["add", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_DiscoverGroup,
    examples=(
        'lukasa discover https://example.org/caches "why our read cache goes stale"',
        "lukasa discover https://example.org/blog --follow",
        "lukasa discover list",
    ),
)
def discover() -> None:
    """Fetch a page or clone a repository, and keep a note about it.

    The note is a document of the corpus, in the collection discoveries. `lukasa discover URL` is short for
    `lukasa discover add URL`.
    """


@discover.command(
    "add",
    examples=(
        'lukasa discover add https://example.org/caches "why our read cache goes stale"',
        "lukasa discover add https://example.org/tools/crane.git --tag cranes --json",
        "lukasa discover add file:///home/me/crane",
    ),
)
@click.argument("url")
@click.argument("context", default="")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to find it by. Repeatable.")
@click.option("--follow", is_flag=True, help="Follow the feed that the page names.")
@click.option(
    "--kind",
    type=click.Choice(["auto", "page", "repository"]),
    default="auto",
    show_default=True,
    help="What it is, if its URL does not tell.",
)
@pass_invocation
def discover_add(cli: Invocation, url: str, context: str, tags: Sequence[str], follow: bool, kind: str) -> None:
    """Fetch a page or clone a repository, and keep a note about it; CONTEXT says why it matters.

    The note is written by the language model, if one is set, and is an excerpt otherwise. Only public addresses are
    asked, and those that LUKASA_FETCH_ALLOW names. A page that has not changed is not read again.
    """
    local = not cli.choices.agent
    found = cli.workspace().discover(url, context, kind=kind, tags=tags, follow=follow, local=local)
    cli.emit(plain(found), _discovered(found, follow))


def _discovered(found: Discovered, follow: bool) -> Iterator[Line]:
    one = found.discovery
    yield line(good(f"{found.outcome} "), title(one.title), dim(f"  {one.document} version {one.version}"))
    yield from block(one.note, "  ")
    yield line(dim(f"  written by {one.by}" if one.by else "  an excerpt: no model wrote a note"))
    if found.relevance is not None:
        yield line(f"  relevance {found.relevance.score:.2f}: {found.relevance.reason}")
        if found.relevance.words:
            yield line(dim(f"  remembered: {', '.join(found.relevance.words)}"))
        for id in found.relevance.entries[:3]:
            yield line(dim(f"  near: {id}"))
    yield line(
        dim(f"  {joined(one.origin, one.lifecycle, f'weight {one.weight:g}', one.standing, ' '.join(one.tags))}")
    )
    for note in one.notes:
        yield line(dim(f"  {note}"))
    if found.followed:
        yield line(good("following "), found.feeds[0].url, dim("  while a worker runs"))
    elif follow:
        yield line(warn("the page names no feed"), dim("  give the address of one: lukasa feed add URL"))
    else:
        for link in found.feeds:
            yield line(dim(f"  it has a feed: lukasa feed add {link.url}"))


@discover.command("list", examples=("lukasa discover list", "lukasa discover list --limit 5 --json"))
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most this many.")
@pass_invocation
def discover_list(cli: Invocation, limit: int) -> None:
    """List what was discovered, newest first."""
    found = cli.workspace().discoveries(limit=limit)
    cli.emit({"discoveries": plain(found)}, _discoveries(found))


def _discoveries(found: Sequence[Discovery]) -> Iterator[Line]:
    if not found:
        yield line("No discoveries yet.")
        yield line(dim('  make one: lukasa discover URL "why it matters"'))
        return
    heads = ("read", "relevance", "title", "context", "document")
    yield from table(
        heads,
        (
            (when(one.read_at), f"{one.relevance:.2f}", brief(one.title, 50), brief(one.context, 30), one.document)
            for one in found
        ),
    )


@click.group(
    cls=CliGroup, examples=("lukasa feed add https://example.org/feed.xml", "lukasa feed list", "lukasa feed poll")
)
def feed() -> None:
    """Follow feeds: the worker takes their new items as discoveries."""


@feed.command("add", examples=("lukasa feed add https://example.org/feed.xml",))
@click.argument("url")
@pass_invocation
def feed_add(cli: Invocation, url: str) -> None:
    """Follow a feed (RSS, Atom, JSON Feed), by its address or that of a page that names it.

    The worker asks it every hour. What it holds now counts as seen; each later item becomes a discovery.
    """
    begun = cli.workspace().follow_feed(url)
    told = dim(f"  {many(len(begun.seen), 'item')} now; new ones come while a worker runs")
    cli.emit(plain(begun), [line(good("following "), begun.location, told)])


@feed.command("list", examples=("lukasa feed list", "lukasa feed list --json"))
@pass_invocation
def feed_list(cli: Invocation) -> None:
    """List the feeds that are followed, when each was asked, and what is wrong."""
    found = cli.workspace().feeds()
    cli.emit({"feeds": plain(found)}, _feeds(found))


def _feeds(found: Sequence[Watch]) -> Iterator[Line]:
    if not found:
        yield line("No feed is followed.")
        yield line(dim("  follow one: lukasa feed add URL"))
        return
    yield from table(
        ("feed", "asked", "next", "id"),
        ((one.location, when(one.checked_at), when(one.due_at), one.id) for one in found),
    )
    for one in found:
        if one.error:
            often = f" ({one.failures} times in a row)" if one.failures > 1 else ""
            yield line(warn(f"  {one.location}: "), f"{one.error}{often}")


@feed.command("remove", examples=("lukasa feed remove https://example.org/feed.xml",))
@click.argument("feed", type=ID, metavar="URL|ID")
@pass_invocation
def feed_remove(cli: Invocation, feed: str) -> None:
    """Follow a feed no longer. What was discovered stays."""
    ended = cli.workspace().unfollow_feed(feed)
    cli.emit(plain(ended), [line(good("no longer following "), ended.location)])


@feed.command("poll", examples=("lukasa feed poll", "lukasa feed poll https://example.org/feed.xml --json"))
@click.argument("feed", type=ID, required=False, metavar="[URL|ID]")
@pass_invocation
def feed_poll(cli: Invocation, feed: str | None) -> None:
    """Ask a feed, or all of them, for new items now."""
    counts = cli.workspace().poll_feeds(feed)
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "no feed is followed"
    cli.emit({"counts": counts}, [line(title("done: "), said)])
