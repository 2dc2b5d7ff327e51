"""docs/reference/mcp.md, made from the table: `python -m lukasa.surfaces.mcp.reference > docs/reference/mcp.md`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from lukasa.surfaces.api.verb import Verb
from lukasa.surfaces.mcp.prompts import OFFERS
from lukasa.surfaces.mcp.resources import TEMPLATES
from lukasa.surfaces.mcp.tools import TOOLS, hints

WIDTH = 140

HEAD = """# MCP

`lukasa mcp` serves this memory to one client over stdin and stdout; `lukasa serve` serves it to many over HTTP at
`/mcp/` ([Connect an MCP client](../how-to/connect-an-mcp-client.md)). This page is made from the same table as the
tools, which is also the table of the [HTTP routes](http.md).

## What holds for every request

- **Who asks** is in the credential: over HTTP the bearer token of a [grant](../how-to/grant-access.md), over a pipe
  what the command line says. No argument of a tool says it. Over HTTP it is looked at with every request, so that a
  grant that was revoked ends at once.
- **Tools** that a pass does not include are not listed, and are refused if they are called.
- **Workspaces**: each tool below takes `workspace`, by name or id. Over a pipe it is the one of the command line if it
  is left out; over HTTP it can be left out by a grant for one workspace. A workspace that the pass is not for answers
  as one that does not exist.
- **Answers** have structured content that follows the tool's output schema, and the same as one JSON document in a
  text block. `memory_context` has the document itself as its text. Of a hit of more than 2,000 characters,
  `memory_read` gives the sentences around what was asked for, and in `part` which characters of all its text they
  are; `memory_get` gives it whole. Rules are never cut.
- **Errors** are results marked as errors whose text says what is wrong and, after `fix:`, what to do. They never
  hold a trace. What an unforeseen failure was is told on the server's stderr.
- **Hints**: *reads* changes nothing; *replaces* takes the place of something (entries keep their former text);
  *again* can be repeated without a further effect.
- **Removing for good**: `memory_scrub_plan` shows what a scrub would remove. `memory_scrub_execute` does it, for the
  owner's pass alone and only over a pipe that the owner opened for it: `lukasa mcp --as owner --can …` with
  `scrub_full`, `scrub_keep_named` or `scrub_purge_thread` named. The client puts the question to its person
  (elicitation), and the digest that they type counts, not what the model sent; one that cannot ask them is refused.
  Over HTTP every token is a grant's, and none of them is let through.
- Over HTTP there are no sessions: every request stands alone, and a server that was restarted is simply there again.
  `GET` and `DELETE` are answered with `405`.

## Tools
"""


def reference() -> str:
    return HEAD + "".join(line + "\n" for part in (_tools(), _resources(), _prompts()) for line in part)


def _tools() -> Iterator[str]:
    for verb in TOOLS:
        yield f"\n### {verb.name}\n"
        owner = ", the owner's alone" if verb.owner_only else ""
        yield from textwrap.wrap(f"*{verb.title}*, capability {verb.needs}{owner}, {_kind(verb)}.", WIDTH)
        yield ""
        yield from textwrap.wrap(verb.description, WIDTH)
        if verb.input.model_fields:
            yield ""
        for name, field in verb.input.model_fields.items():
            needed = ", required" if field.is_required() else ""
            about = f": {field.description}" if field.description else ""
            yield from textwrap.wrap(f"- `{name}`{needed}{about}", WIDTH, subsequent_indent="  ")


def _kind(verb: Verb) -> str:
    told = hints(verb)
    if told.read_only_hint:
        return "reads"
    return ", ".join(["replaces" if told.destructive_hint else "adds", *(["again"] if told.idempotent_hint else [])])


def _resources() -> Iterator[str]:
    yield "\n## Resources\n"
    for template in TEMPLATES:
        yield from textwrap.wrap(f"- `{template.uri_template}`: {template.description}", WIDTH, subsequent_indent="  ")


def _prompts() -> Iterator[str]:
    yield "\n## Prompts\n"
    for offer in OFFERS.values():
        named = ", ".join(f"`{argument.name}`" for argument in offer.prompt.arguments or ())
        about = f"- `{offer.prompt.name}` ({offer.prompt.title}), capability `{offer.needs}`, with {named}: "
        yield from textwrap.wrap(about + str(offer.prompt.description), WIDTH, subsequent_indent="  ")


if __name__ == "__main__":
    print(reference(), end="")
