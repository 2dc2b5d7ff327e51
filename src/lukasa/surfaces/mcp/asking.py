"""A person who is asked through their client, so that no model answers for them.

What a verb with `asks` does cannot be undone, and a model may have been talked into it by what it read. The client has
to put the question to its person: what they type takes the place of what the model said. From a client that cannot,
nobody but the model would have answered, and nothing is done.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp_types.version import is_version_at_least

from lukasa.surfaces.api.table import BY_NAME
from lukasa.surfaces.mcp.desk import Asked, Desk, Refusal

CONFIRM = "confirm"  # the argument, and the name of the question

_IN_THE_ANSWER = "2026-07-28"  # from this version on a server asks in its answer, and the client calls again
_NOBODY = (
    "this client cannot put a question to its person, and nobody else confirms what cannot be undone\n"
    "fix: ask them to use the command line, the page that `lukasa serve` opens, or a client with elicitation"
)
_FORM = {
    "type": "object",
    "properties": {CONFIRM: {"type": "string", "title": "Digest", "description": "As shown; anything else stops it."}},
    "required": [CONFIRM],
}


async def confirmed(
    desk: Desk, ctx: Asked, params: types.CallToolRequestParams
) -> dict[str, Any] | types.InputRequiredResult:
    """The arguments of a call, with what a person typed if one had to be asked; or the question itself."""
    arguments = dict(params.arguments or {})
    verb = BY_NAME.get(params.name)
    if verb is None or verb.asks is None:
        return arguments
    question = await desk.answer(ctx, lambda given: desk.question(given, params.name, arguments))
    if not _can_ask(ctx):
        raise Refusal(_NOBODY)
    if is_version_at_least(ctx.protocol_version, _IN_THE_ANSWER):
        answer = (params.input_responses or {}).get(CONFIRM)
        if answer is None:
            form = types.ElicitRequestFormParams(message=question, requested_schema=_FORM)
            return types.InputRequiredResult(input_requests={CONFIRM: types.ElicitRequest(params=form)})
    else:
        answer = await ctx.session.elicit_form(question, _FORM, ctx.request_id)
    return {**arguments, CONFIRM: _typed(answer)}


def _can_ask(ctx: Asked) -> bool:
    declared = ctx.session.client_capabilities
    modes = None if declared is None else declared.elicitation
    return modes is not None and (modes.form is not None or modes.url is None)  # those before there were modes: forms


def _typed(answer: object) -> object:
    if isinstance(answer, types.ElicitResult) and answer.action == "accept":
        return (answer.content or {}).get(CONFIRM, "")
    raise Refusal("the person did not confirm it; nothing was done\nfix: do not ask again unless they want it")
