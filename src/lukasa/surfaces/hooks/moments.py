"""The moments of a session at which memory speaks up: it starts, something is asked, something fails."""

from __future__ import annotations

from lukasa.model.echo import marked, unmarked
from lukasa.read.context import Document, render
from lukasa.service.retrieval.read import counted
from lukasa.surfaces.hooks import passages
from lukasa.surfaces.hooks.payload import Payload, excerpt
from lukasa.surfaces.hooks.pushed import Pushed
from lukasa.surfaces.hooks.sessions import Talk, point

# Claude Code passes on this many characters of a hook's answer; what is longer becomes a file that nobody reads.
MOST_CHARACTERS = 10_000
FAILURE_HITS = 5


def session_start(talk: Talk, payload: Payload) -> Pushed:
    """The pages and rules that always hold, and what stands highest.

    A resumed session still has what it was given; a cleared or compacted one has lost it.
    """
    anew = payload.source != "resume"
    found = talk.world.context("")
    pushed = _push(talk, found.document, anew=anew)
    point(talk, payload)
    return pushed


def prompt(talk: Talk, payload: Payload) -> Pushed:
    """What memory has for this question and this session has not seen; it counts as read."""
    question = excerpt(unmarked(payload.prompt)).strip()
    if not question:
        return Pushed()
    found = talk.world.context(question)
    pushed = _push(talk, found.document)
    counted(talk.world.ctx, [found.hits[id] for id in pushed.ids if id in found.hits], talk.world.ctx.now)
    return pushed


def tool_failure(talk: Talk, payload: Payload) -> Pushed:
    """What memory knows about a failure like this one."""
    failure = excerpt(unmarked(payload.failure)).strip()
    if not failure:
        return Pushed()
    question = f"{payload.tool} {payload.tool_input}\n{failure}".strip()
    recall = talk.world.read(question, profile="lean", limit=FAILURE_HITS, count=False)
    hits = {hit.id: hit for hit in passages.about_failure(recall, question)}
    tiers = [tier.name for tier in talk.world.spec.tiers][::-1]
    document = passages.recalled(talk.world.name, list(hits.values()), tiers, question)
    pushed = _push(talk, document)
    counted(talk.world.ctx, [hits[id] for id in pushed.ids], talk.world.ctx.now)
    return pushed


def _push(talk: Talk, document: Document, *, anew: bool = False) -> Pushed:
    """Say what is new to the session and fits, and remember that it was said."""
    claimed = talk.claim(lambda given: _fitting(passages.news(document, given)), anew=anew)
    if passages.empty(claimed):
        return Pushed()
    return Pushed(marked(render(claimed)), tuple(entry.id for entry in passages.items(claimed)))


def _fitting(document: Document) -> Document:
    while _length(marked(render(document))) > MOST_CHARACTERS:
        less = passages.shorter(document)
        if less is None:
            break
        document = less
    return document


def _length(text: str) -> int:
    """Characters as a harness written in JavaScript counts them."""
    return len(text.encode("utf-16-le")) // 2
