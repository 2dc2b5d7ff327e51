"""docs/reference/http.md, made from the table: `python -m lukasa.surfaces.http.reference > docs/reference/http.md`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.api.verb import Verb

WIDTH = 140

HEAD = """# HTTP

`lukasa serve` answers on loopback ([Run the server](../how-to/run-the-server.md)). This page is made from the same
table as the routes; `GET /openapi.json` has the schemas.

## What holds for every request

- **Pass**: `Authorization: Bearer lks_…`, a token that [`lukasa grant create`](../how-to/grant-access.md) gave; or
  the session of the owner's page, whose changes carry `X-CSRF-Token`. `GET /health` alone needs none; the page itself
  holds nothing.
- **Host and Origin** must be the server's own. No other origin is allowed anything, and nothing is changed by GET.
- **Bodies** are one JSON object each, of at most 8,000,000 bytes. Fields that are not listed are refused.
- **Workspaces** stand in the path by name or id. One that the pass is not for is `404`, as one that does not exist.
- **Errors** are `application/problem+json` with `type` (a stable code), `title`, `status`, `detail` and `fix`.
- **Versions**: answers about one entry or page have an `ETag`. PATCH of an entry and PUT of a page need `If-Match`
  with it (`428` without), and get `412` with the present `version` if it has changed. `If-Match: *` changes whatever
  is there; `If-None-Match: *` makes a page that must be new.
- **Keys**: a POST that changes something may carry an `Idempotency-Key`. Sent again within a day with the same body,
  it gets the same answer and `Idempotency-Replayed: true`; with another body `422`, and while the first is under way
  `409`. Making a grant takes no key, since its answer is a secret.
- **Pages** of lists: `limit`, `after`, and in the answer `next` (also as a `Link` header).

| status | when |
| --- | --- |
| `400` | the body is not JSON |
| `401` | no pass, or one that is malformed, unknown, expired or revoked |
| `403` | the pass is not for this, the spec forbids it, or the request comes from a page elsewhere |
| `404` | not there, or not for this pass |
| `405` | not with this method |
| `409` | it is in a state that does not allow this, or something holds that name or text |
| `412` | it has changed since it was read |
| `413`, `415` | too large, not JSON |
| `421` | the server is not known by that name |
| `422` | a field is missing, unknown or wrong |
| `428` | a change that does not say which version it changes |
| `502`, `503`, `507` | no answer of a language model; busy; no space left |

## The page

- `POST /session` with `{"code": …}`, from the fragment of the link, gives the session's cookie and `csrf`. A code
  works once.
- `GET /session` gives `csrf` again, `DELETE /session` ends it.
- `GET /v1/workspaces/{workspace}/events/stream` tells the owner's page of events as they happen (server-sent events).

## Verbs
"""


def reference(verbs: Sequence[Verb] = VERBS) -> str:
    return HEAD + "".join(line + "\n" for verb in verbs for line in _lines(verb))


def _lines(verb: Verb) -> Iterator[str]:
    yield f"\n### {verb.method} /v1{verb.path}\n"
    owner = ", the owner's alone" if verb.owner_only else ""
    yield from textwrap.wrap(f"`{verb.name}`, capability {verb.needs}{owner}. {verb.description}", WIDTH)
    fields = {name: field for name, field in verb.input.model_fields.items() if name != "expected_version"}
    if fields:
        yield ""
    for name, field in fields.items():
        needed = "" if not field.is_required() else ", required"
        where = " in the path" if name in verb.path_fields else ""
        about = f": {field.description}" if field.description else ""
        yield from textwrap.wrap(f"- `{name}`{where}{needed}{about}", WIDTH, subsequent_indent="  ")
    yield f"\nAnswers `{verb.status}` with `{verb.output.__name__}`."


if __name__ == "__main__":
    print(reference(), end="")
