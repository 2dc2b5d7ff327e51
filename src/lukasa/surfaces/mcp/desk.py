"""Where every request ends up: who asks is found out, the verb is performed in a thread, failures become words.

Nothing here remembers a request. What differs between two of them comes in as an argument.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mcp.server import ServerRequestContext
from msgspec import Struct

from lukasa.model.errors import Forbidden, InvalidInput, LukasaError, NotFound
from lukasa.model.text import escape_controls
from lukasa.service.admin.access import Access, Credential
from lukasa.surfaces.api.table import BY_NAME
from lukasa.surfaces.api.verb import Verb, VerbInput, VerbOutput, perform, prepare, validated
from lukasa.surfaces.offload import offload

WORKSPACE = "workspace"  # the one argument of a tool that no verb's input has: over HTTP it stands in the path

Asked = ServerRequestContext[Any, Any]
T = TypeVar("T")


class Refusal(Exception):
    """What the client is told instead of an answer: what is wrong, and what to do."""


class Desk(Struct, frozen=True):
    """`identify` gives the pass of a request, from its credential alone. `home` is the workspace if none is named."""

    access: Access
    identify: Callable[[Asked], Credential]
    home: str | None = None

    async def answer(self, ctx: Asked, work: Callable[[Credential], T]) -> T:
        """Work done in a thread with the pass of this request; whatever goes wrong is a Refusal."""
        return await offload(self._answered, ctx, work)

    def _answered(self, ctx: Asked, work: Callable[[Credential], T]) -> T:
        try:
            return work(self.identify(ctx))
        except Exception as error:  # noqa: BLE001 - the surface's last handler: whatever it is, the client gets words
            raise Refusal(_words(error)) from None

    def offers(self, given: Credential, verb: Verb) -> bool:
        """Whether a verb is a tool for this pass."""
        return verb.tool and verb.open_to(given)

    def perform(self, given: Credential, name: str, arguments: Mapping[str, Any]) -> VerbOutput:
        verb, place, input = self._meant(given, name, arguments)
        return perform(verb, self.access, given, place, input)

    def question(self, given: Credential, name: str, arguments: Mapping[str, Any]) -> str:
        """What a person has to confirm before this call of a verb that asks."""
        verb, place, input = self._meant(given, name, arguments)
        asked = "" if verb.asks is None else verb.asks(prepare(verb, self.access, given, place), input)
        return "\n".join(escape_controls(line) for line in asked.split("\n"))

    def _meant(self, given: Credential, name: str, arguments: Mapping[str, Any]) -> tuple[Verb, str | None, VerbInput]:
        """The verb, the workspace and the input of a call, for a pass that the verb is open to."""
        verb = BY_NAME.get(name)
        if verb is None:
            raise NotFound(f"no tool {name[:60]!r}", fix="list the tools")
        if not verb.tool:
            raise Forbidden(
                f"{verb.name} is not offered to MCP clients",
                fix="ask the owner to use the command line, or the page that `lukasa serve` opens",
            )
        verb.require(given)
        fields = dict(arguments)
        place = self.place(given, fields.pop(WORKSPACE, None)) if verb.in_workspace else None
        return verb, place, validated(verb.input, fields)

    def place(self, given: Credential, named: object = None) -> str:
        """The workspace that is meant: the one named, else this server's own, else the only one there is."""
        if named is not None and not isinstance(named, str):
            raise InvalidInput("workspace: it must be text", fix="give a name or an id, or leave it out")
        chosen = named or self.home
        if chosen:
            return chosen
        visible = [info.name for info in self.access.visible(given)]
        if len(visible) == 1:
            return visible[0]
        if not visible:
            raise NotFound("this pass is for no workspace that still exists", fix="ask the owner for another grant")
        raise InvalidInput("which workspace?", fix=f"name one as `workspace`: {', '.join(visible[:20])}")


def _words(error: Exception) -> str:
    if isinstance(error, LukasaError):
        message, fix = error.message, error.fix
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno} in {last.name}"
        print(f"lukasa mcp: unexpected {type(error).__name__} at {where}", file=sys.stderr)
        message, fix = f"unexpected {type(error).__name__}", "try once more; the server's stderr says where it happened"
    return escape_controls(message + (f"\nfix: {fix}" if fix else ""))
