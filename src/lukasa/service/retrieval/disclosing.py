"""Write the disclosure ledger: note each text of memory that goes to an agent, with what was in it.

A context is made for a prompt, so it counts on every surface but the owner's page, which shows it to the owner. Hits,
entries and pages count where an agent gets them: the surfaces for agents note what they send (MCP, HTTP with a token,
hooks, LangGraph, Anthropic's memory tool). What the owner looks at on the page or the command line is in no prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lukasa.model.disclosure import Disclosure, Shown
from lukasa.model.text import estimate_tokens
from lukasa.read.context import passages
from lukasa.service.call import CallContext

if TYPE_CHECKING:
    from lukasa.read.context import Context, ContextDocument
    from lukasa.read.rank import Hit

PAGE = "web"  # the surface on which the owner looks at memory
Passages = Sequence[tuple[str, Shown]]  # each with its tier


def disclose(ctx: CallContext, verb: str, tokens: int, shown: Passages, *, conversation: str | None = None) -> None:
    """Note a text of so many tokens with these entries and pages in it.

    Each store notes what it keeps; the workspace's also counts the frame of the text.
    """
    if not shown or not ctx.spec.disclosure.record or ctx.origin.surface == PAGE:
        return
    theirs = [one for tier, one in shown if ctx.spec.tier(tier).home == "account"]
    ours = [one for tier, one in shown if ctx.spec.tier(tier).home != "account"]
    talk = conversation if conversation is not None else ctx.keys.get("conversation", "")
    who = (ctx.now, ctx.origin.principal, ctx.origin.surface, ctx.origin.transport, talk)
    apart = sum(one.tokens for one in theirs) if ours else tokens
    if theirs:
        ctx.account.disclose(Disclosure(*who, ctx.info.id, verb, apart, tuple(theirs)))
    if ours:
        ctx.local.disclose(Disclosure(*who, "", verb, tokens - apart, tuple(ours)))


def disclose_context(ctx: CallContext, verb: str, found: Context) -> None:
    """Note a context as it is."""
    disclose(ctx, verb, found.tokens, passages(found.document, found.versions, found.pages, found.hits))


def disclose_part(
    ctx: CallContext,
    verb: str,
    document: ContextDocument,
    found: Context | None,
    hits: Mapping[str, Hit],
    *,
    text: str,
    conversation: str | None,
) -> None:
    """Note the part of a context, or of some hits, that was sent as this text."""
    versions = {**(found.versions if found is not None else {}), **{id: hit.entry.version for id, hit in hits.items()}}
    pages = found.pages if found is not None else {}
    shown = passages(document, versions, pages, hits)
    disclose(ctx, verb, estimate_tokens(text), shown, conversation=conversation)


def disclose_hits(ctx: CallContext, verb: str, hits: Sequence[Hit]) -> None:
    """Note the texts of hits, for a program that puts them into a prompt in a form of its own."""
    shown = [
        (one.scope.tier, Shown(one.id, one.version, estimate_tokens(one.content)))
        for hit in hits
        for one in (hit.entry, *(earlier.entry for earlier in hit.earlier))
    ]
    disclose(ctx, verb, sum(one.tokens for _, one in shown), shown)
