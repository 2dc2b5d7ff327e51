"""Write docs/reference/http.md and mcp.md from the verb table.

python -m lukasa.surfaces.reference http > docs/reference/http.md
python -m lukasa.surfaces.reference mcp > docs/reference/mcp.md
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence

from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb
from lukasa.surfaces.mcp.resources import PROMPTS, TEMPLATES
from lukasa.surfaces.mcp.tools import hints, more

WIDTH = 140

HTTP = """# HTTP

`lukasa serve` answers on loopback ([Run the server](../how-to/run-the-server.md)). This page comes from the same
table as the routes; `GET /openapi.json` has the schemas.

## Rules for every request

- **Credential**: `Authorization: Bearer lks_…`, the token of a [grant](../how-to/grant-access.md); or the session
  cookie of the owner's page, whose changes also carry `X-CSRF-Token`. Only `GET /live`, `GET /ready`,
  `GET /openapi.json` and the files of the page need no credential; the page itself shows nothing without a session.
- **Host and Origin** must be the server's own. The server lets no other origin in, and GET changes nothing.
- **Bodies** are one JSON object each, of at most 8,000,000 bytes. The server refuses fields that are not listed.
- **Workspaces** are in the path, by name or id. A workspace outside the credential is `404`, like one that does not
  exist.
- **Scope keys**: the header `Lukasa-Scope: org_id=acme&domain_id=billing`, written like a query, binds keys that the
  spec of the workspace adds. It narrows what a grant binds; another value than the grant's is `404`.
- **Errors** are `application/problem+json` with `type` (a stable code), `title`, `status`, `detail`, `fix` and
  `request_id`.
- **Request ids**: every answer has an `X-Request-Id`. The server takes the one of the request if it has 1 to 64
  letters, digits, `.`, `_` and `-` and begins with a letter or digit; otherwise it makes one.
- **Versions**: an answer about one entry or page has an `ETag`. PATCH of an entry and PUT of a page need `If-Match`
  with it: without it the answer is `428`, and after a change in between it is `412` with the current `version`.
  `If-Match: *` changes any version; `If-None-Match: *` creates a page that must be new.
- **Idempotency**: a POST that changes something may carry an `Idempotency-Key`. Sent again within a day with the same
  body, it gets the same answer and `Idempotency-Replayed: true`; with another body `422`, and while the first is in
  progress `409`. `grant_create` takes no key, since its answer is a secret.
- **Pages** of lists: `limit`, `after`, and in the answer `next` (also as a `Link` header).

| status | meaning |
| --- | --- |
| `400` | the body is not JSON |
| `401` | no credential, or one that is malformed, unknown, expired or revoked |
| `403` | the credential does not include this, the spec forbids it, or another site sent the request |
| `404` | it does not exist, or the credential does not reach it |
| `405` | the path has no such method |
| `409` | its state does not allow this, or something else has that name or text |
| `412` | it has changed since you read it |
| `413`, `415` | the body is too large, or not JSON |
| `421` | the Host header is not a name of this server |
| `422` | a field is missing, unknown or wrong |
| `428` | the change does not say which version it changes |
| `502`, `503`, `507` | the language model gave no answer; the server is busy, stopping or not ready; no space is left |

## The page

- `POST /session` with `{"code": …}`, from the fragment of the link, sets the session's cookie and returns `csrf`. A
  code works once.
- `GET /session` returns `csrf` again, `DELETE /session` ends the session.
- `GET /v1/workspaces/{workspace}/events/stream` sends events to the owner's page as they happen (server-sent events).

## For the operator

- `GET /live` answers `200` as long as the process answers; it does not touch the database. `GET /health` is the same.
- `GET /ready` answers `200` if the account's database answers within two seconds and the server is not stopping. Else
  it answers `503` with the type `not-ready`; `part` is `database` or `server`, and `detail` says what is wrong.
- `GET /metrics`, capability `metrics`, answers in the text format of Prometheus. [Run the
  server](../how-to/run-the-server.md#watch-it) lists the metrics.

## Verbs
"""

MCP = """# MCP

`lukasa mcp` serves this memory to one client over stdin and stdout; `lukasa serve` serves it to many over HTTP at
`/mcp/` ([Connect an MCP client](../how-to/connect-an-mcp-client.md)). This page comes from the same table as the
tools and the [HTTP routes](http.md).

## Rules for every request

- **The credential** alone says who asks: over HTTP the bearer token of a [grant](../how-to/grant-access.md), over a
  pipe the options of the command line. No argument of a tool says it. Over HTTP the server checks the token with
  every request, so a revoked grant ends at once.
- **Tools** are listed if the credential includes them: those of [every day](#tools), with the fields that they need
  every day, and `more`, which explains and calls [all others](#more-tools). A model pays for each listed tool in every
  request. A client that shall list them all starts `lukasa mcp --tools all`, or asks `/mcp/?tools=all`. Every tool can
  be called by its name, with all of its fields, also if it is not listed. A tool that the credential does not include
  is refused; one that does not exist is an error of the protocol, `-32602`.
- **Workspaces**: each tool below takes `workspace`, a name or an id. Over a pipe the default is the workspace of the
  command line; over HTTP a grant for one workspace may leave it out. A workspace outside the credential looks like
  one that does not exist.
- **Scope keys**: each of these tools also takes `scope`, an object such as `{"org_id": "acme"}`, for the keys that the
  spec of the workspace adds. It narrows what the grant or the command line binds, and cannot change it.
- **Answers** are short texts: every remembered line is quoted with `>`, and a heading says what is unusual about it.
  With `detail`, an argument of every tool, an answer is structured content and the same as one JSON document, as over
  HTTP. The text of `memory_context` is the document itself. Of a hit with more than 2,000 characters, `memory_read`
  gives the sentences around the words of the question, and `part` says which characters they are; `memory_get` gives
  the whole text. Rules are never cut.
- **Ids** in texts are the last eight characters. Every tool takes a beginning or an end of an id that only one entry
  has.
- **Errors** are results marked as errors. Their text says what is wrong and, after `fix:`, what to do. They never
  contain a trace; the server writes the place of an unexpected failure to its stderr. For a resource that is not there,
  the `data` of the protocol's error has its `uri`.
- **Completion**: names of workspaces and pages, and tags as topics.
- **Subscriptions**: a client hears within a second that a resource or the list of resources has changed, with
  `subscriptions/listen` over both transports, and with `resources/subscribe` of older clients over a pipe.
- **Hints**: *reads* changes nothing; *replaces* replaces or removes something (entries keep their former text);
  *again* can be repeated without a further effect.
- **Removing for good**: `memory_scrub_plan` shows what a scrub would remove. `memory_scrub_execute` removes it, only
  for the owner's credential and only over a pipe that the owner opened for it: `lukasa mcp --as owner --can …` with
  `scrub_full`, `scrub_keep_named` or `scrub_purge_thread`. The client puts the question to its person (elicitation),
  and the digest that the person types counts, not the model's argument; a client that cannot ask is refused. Over
  HTTP every token belongs to a grant, so MCP over HTTP never executes
  a scrub.
- **HTTP has no sessions**: every request stands alone, and a restarted server needs no reconnection. `GET` and
  `DELETE` get `405`. The answer to `subscriptions/listen` is a stream, which ends with the server.

## Tools
"""


def http_reference(verbs: Sequence[Verb] = VERBS) -> str:
    """Return docs/reference/http.md."""
    return HTTP + "".join(line + "\n" for verb in verbs for line in _route(verb))


def _route(verb: Verb) -> Iterator[str]:
    yield f"\n### {verb.method} /v1{verb.path}\n"
    yield from textwrap.wrap(f"`{verb.name}`, capability {verb.needs}{_owner(verb)}. {verb.description}", WIDTH)
    yield from _fields(verb, path=verb.path_fields, without=("expected_version",))
    yield f"\nAnswers `{verb.status}` with `{verb.output.__name__}`."


def _owner(verb: Verb) -> str:
    return ", only for the owner" if verb.owner_only else ""


def _fields(verb: Verb, path: Sequence[str] = (), without: Sequence[str] = ()) -> Iterator[str]:
    fields = {name: field for name, field in verb.input.model_fields.items() if name not in without}
    if fields:
        yield ""
    for name, field in fields.items():
        where = " in the path" if name in path else ""
        needed = ", required" if field.is_required() else ""
        about = f": {field.description}" if field.description else ""
        yield from textwrap.wrap(f"- `{name}`{where}{needed}{about}", WIDTH, subsequent_indent="  ")


def mcp_reference(verbs: Sequence[Verb] = VERBS) -> str:
    """Return docs/reference/mcp.md."""
    daily = (line for verb in verbs if verb.tool and verb.everyday for line in _tool(verb))
    others = (line for verb in verbs if verb.tool and not verb.everyday for line in _tool(verb))
    parts = (daily, _more(verbs), others, _resources(), _prompts())
    return MCP + "".join(line + "\n" for part in parts for line in part)


def _more(verbs: Sequence[Verb]) -> Iterator[str]:
    made = more([verb for verb in verbs if verb.tool and not verb.everyday])
    yield "\n### more\n"
    yield from textwrap.wrap(str(made.description), WIDTH)
    yield ""
    yield "- `tool`, required: The name of one of the tools below."
    yield "- `arguments`: Its arguments. Without them, `more` explains the tool."
    yield "\n## More tools"


def _tool(verb: Verb) -> Iterator[str]:
    hint = hints(verb)
    kinds = ["reads"] if hint.read_only_hint else ["replaces" if hint.destructive_hint else "adds"]
    kinds += ["again"] if hint.idempotent_hint else []
    yield f"\n### {verb.name}\n"
    yield from textwrap.wrap(f"*{verb.title}*, capability {verb.needs}{_owner(verb)}, {', '.join(kinds)}.", WIDTH)
    yield ""
    yield from textwrap.wrap(verb.description, WIDTH)
    if verb.everyday:
        yield f"\nListed with {', '.join(f'`{name}`' for name in verb.everyday)}."
    yield from _fields(verb)


def _resources() -> Iterator[str]:
    yield "\n## Resources\n"
    for template in TEMPLATES:
        yield from textwrap.wrap(f"- `{template.uri_template}`: {template.description}", WIDTH, subsequent_indent="  ")


def _prompts() -> Iterator[str]:
    yield "\n## Prompts\n"
    for offer in PROMPTS.values():
        named = ", ".join(f"`{argument.name}`" for argument in offer.prompt.arguments or ())
        about = f"- `{offer.prompt.name}` ({offer.prompt.title}), capability `{offer.needs}`, with {named}: "
        yield from textwrap.wrap(about + str(offer.prompt.description), WIDTH, subsequent_indent="  ")


if __name__ == "__main__":
    print({"http": http_reference, "mcp": mcp_reference}[sys.argv[1]](), end="")
