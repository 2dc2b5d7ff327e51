"""Note in the disclosure ledger what the answer of a verb holds: each entry and page, with its tokens as sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from lukasa.model.disclosure import Shown
from lukasa.model.text import estimate_tokens
from lukasa.service.retrieval import disclosing
from lukasa.surfaces.api.shapes import ContextOut, EntryOut, HitOut, NamedOut
from lukasa.surfaces.api.verb import Call, Verb, VerbInput, VerbOutput

Said = Callable[[Any], str]


def _as_json(value: BaseModel) -> str:
    return value.model_dump_json(exclude_none=True)


def disclose_output(
    call: Call, verb: Verb, given: VerbInput, output: VerbOutput, text: str, said: Said = _as_json
) -> None:
    """Note the answer of a verb that reads, sent as this text. A context notes itself, where it is composed.

    An answer to a change repeats what the caller has just said, and so counts for nothing. `said` returns the text of
    one entry, hit or page in the answer.
    """
    if verb.mutates or call.entered is None or isinstance(output, ContextOut):
        return
    if call.entered.ctx.origin.surface == disclosing.PAGE:  # before anything is measured
        return
    shown = list(_shown(output, lambda one: estimate_tokens(said(one))))
    if shown:
        named = {key: value for key in ("channel", "conversation") if (value := getattr(given, key, None))}
        disclosing.disclose(call.at(**named).ctx, verb.name, estimate_tokens(text), shown)


def _shown(value: object, cost: Callable[[Any], int]) -> Iterator[tuple[str, Shown]]:
    """Yield the entries and pages of an answer, each with its tier. What a hit says around its entry belongs to it."""
    match value:
        case HitOut():
            under = [(one, cost(one)) for one in value.earlier]
            own = max(0, cost(value) - sum(tokens for _, tokens in under))
            yield value.entry.tier, Shown(value.entry.id, value.entry.version, own)
            for one, tokens in under:
                yield value.entry.tier, Shown(one.id, one.version, tokens)
        case EntryOut():
            yield value.tier, Shown(value.id, value.version, cost(value))
        case NamedOut():
            yield value.tier, Shown(value.name, value.version, cost(value), page=True)
        case BaseModel():
            for name in type(value).model_fields:
                yield from _shown(getattr(value, name), cost)
        case list():
            for one in value:
                yield from _shown(one, cost)
