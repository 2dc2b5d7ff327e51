"""Note in the disclosure ledger what the answer of a verb holds: each entry and page, with its tokens as sent."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from lukasa.model.disclosure import Shown
from lukasa.model.text import estimate_tokens
from lukasa.service.retrieval import disclosing
from lukasa.surfaces.api.shapes import ContextOut, EntryOut, HitOut, NamedOut
from lukasa.surfaces.api.verb import Call, Verb, VerbInput, VerbOutput


def disclose_output(call: Call, verb: Verb, given: VerbInput, output: VerbOutput, text: str) -> None:
    """Note the answer of a verb that reads, sent as this text. A context notes itself, where it is composed.

    An answer to a change repeats what the caller has just said, and so counts for nothing.
    """
    if verb.mutates or call.entered is None or isinstance(output, ContextOut):
        return
    if call.entered.ctx.origin.surface == disclosing.PAGE:  # before anything is measured
        return
    shown = list(_shown(output))
    if shown:
        named = {key: value for key in ("channel", "conversation") if (value := getattr(given, key, None))}
        disclosing.disclose(call.at(**named).ctx, verb.name, estimate_tokens(text), shown)


def _shown(value: object) -> Iterator[tuple[str, Shown]]:
    """Yield the entries and pages of an answer, each with its tier. What a hit says around its entry belongs to it."""
    match value:
        case HitOut():
            under = [(one, _tokens(one)) for one in value.earlier]
            own = _tokens(value) - sum(tokens for _, tokens in under)
            yield value.entry.tier, Shown(value.entry.id, value.entry.version, own)
            for one, tokens in under:
                yield value.entry.tier, Shown(one.id, one.version, tokens)
        case EntryOut():
            yield value.tier, Shown(value.id, value.version, _tokens(value))
        case NamedOut():
            yield value.tier, Shown(value.name, value.version, _tokens(value), page=True)
        case BaseModel():
            for name in type(value).model_fields:
                yield from _shown(getattr(value, name))
        case list():
            for one in value:
                yield from _shown(one)


def _tokens(value: BaseModel) -> int:
    return estimate_tokens(value.model_dump_json(exclude_none=True))
