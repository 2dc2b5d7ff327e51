"""Choose what memory adds to a session when it starts, at a prompt, and after a tool failure.

Only passages that are new to the session are added, and only as many as the harness passes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from lukasa.model.echo import marked, unmarked
from lukasa.model.text import content_hash, terms
from lukasa.read.context import Context, ContextDocument, ContextItem, Pinned, Slice, in_part, item, render
from lukasa.read.question import query_terms
from lukasa.read.rank import Hit
from lukasa.service.retrieval.disclosing import disclose_part
from lukasa.service.retrieval.read import counted
from lukasa.surfaces.hooks.harness import HarnessEvent, HookResult, excerpt
from lukasa.surfaces.hooks.harness_sessions import HookSession, note_session

# Claude Code passes on this many characters of a hook's answer; it writes a longer answer to a file that nobody reads.
MOST_CHARACTERS = 10_000
FAILURE_HITS = 5


def session_start(session: HookSession, event: HarnessEvent) -> HookResult:
    """Inject the named pages, the standing rules and the most relevant entries.

    A resumed session still has its passages; a cleared or compacted one has lost them and gets them again.
    """
    from_start = event.source != "resume"
    found = session.workspace.context("", record=False)
    result = _inject(session, "hook.session-start", found.document, found, found.hits, from_start=from_start)
    note_session(session, event)
    return result


def subagent_start(session: HookSession, event: HarnessEvent) -> HookResult:
    """Inject into a subagent what a session gets at its start. What it has is noted apart from its parent's."""
    found = session.workspace.context("", record=False)
    return _inject(session, "hook.subagent-start", found.document, found, found.hits, from_start=True)


def prompt(session: HookSession, event: HarnessEvent) -> HookResult:
    """Inject entries for this prompt that the session has not seen, and count them as read."""
    question = excerpt(unmarked(event.prompt)).strip()
    if not question:
        return HookResult()
    found = session.workspace.context(question, record=False)
    result = _inject(session, "hook.prompt", found.document, found, found.hits)
    counted(session.workspace.ctx, [found.hits[id] for id in result.ids if id in found.hits], session.workspace.ctx.now)
    return result


def tool_failure(session: HookSession, event: HarnessEvent) -> HookResult:
    """Inject entries about a failure like this one."""
    failure = excerpt(unmarked(event.failure)).strip()
    if not failure:
        return HookResult()
    question = f"{event.tool} {event.tool_input}\n{failure}".strip()
    recall = session.workspace.read(question, profile="lean", limit=FAILURE_HITS, count=False, sensitive=False)
    hits = {hit.id: hit for hit in about_failure(recall, question)}
    tiers = [tier.name for tier in session.workspace.spec.tiers][::-1]
    document = recalled(session.workspace.name, list(hits.values()), tiers, question)
    result = _inject(session, "hook.tool-failure", document, None, hits)
    counted(session.workspace.ctx, [hits[id] for id in result.ids], session.workspace.ctx.now)
    return result


def _inject(
    session: HookSession,
    verb: str,
    document: ContextDocument,
    found: Context | None,
    hits: Mapping[str, Hit],
    *,
    from_start: bool = False,
) -> HookResult:
    """Inject the passages that are new to the session and fit; note them as given, and in the disclosure ledger."""
    claimed = session.claim(lambda given: _fitting(news(document, given)), marks, from_start=from_start)
    if empty(claimed):
        return HookResult()
    text = marked(render(claimed))
    talk = session.conversation.id if session.conversation is not None else None
    disclose_part(session.workspace.ctx, verb, claimed, found, hits, text=text, conversation=talk)
    return HookResult(text, tuple(entry.id for entry in items(claimed)))


def _fitting(document: ContextDocument) -> ContextDocument:
    while _length(marked(render(document))) > MOST_CHARACTERS:
        less = shorter(document)
        if less is None:
            break
        document = less
    return document


def _length(text: str) -> int:
    """Count characters as JavaScript does: in UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


# Words that most failures share: on their own they do not relate two failures.
_COMMONPLACE = """error errors failed failure failing fail exit exited code status command line file files directory
path found cannot unable unknown invalid exception traceback recent call last stdout stderr output message warning fatal
bash shell tool usage true false none null undefined"""
SHARED_WORDS = 2
MOST_TERMS, MOST_TOKENS = 200, 400  # terms of a failure that count; tokens of one hit in the answer


def marks(document: ContextDocument) -> Iterator[str]:
    """Yield a mark for each passage, made of its id and a hash of its text: an edited passage is a new one."""
    for page in document.pinned:
        yield _page_mark(page)
    for entry in items(document):
        yield _item_mark(entry)


def _page_mark(page: Pinned) -> str:
    return f"{page.tier}/{page.name}#{content_hash(page.body)[:8]}"


def _item_mark(entry: ContextItem) -> str:
    # A passage is news again when something that it cites is not what it was.
    return f"{entry.id}#{content_hash(''.join((entry.content, *entry.cited)))[:8]}"


def items(document: ContextDocument) -> Iterator[ContextItem]:
    yield from document.standing
    for part in document.recalled:
        yield from part.items


def news(document: ContextDocument, given: Container[str]) -> ContextDocument:
    """Return the document without the passages that the session has."""
    slices = [Slice(part.tier, _unseen(part.items, given)) for part in document.recalled]
    return replace(
        document,
        pinned=tuple(page for page in document.pinned if _page_mark(page) not in given),
        standing=_unseen(document.standing, given),
        recalled=tuple(part for part in slices if part.items),
    )


def _unseen(entries: Iterable[ContextItem], given: Container[str]) -> tuple[ContextItem, ...]:
    return tuple(entry for entry in entries if _item_mark(entry) not in given)


def empty(document: ContextDocument) -> bool:
    return not (document.pinned or document.standing or document.recalled)


def shorter(document: ContextDocument) -> ContextDocument | None:
    """Return the document without its last passage; None if only named pages are left, which are never cut."""
    if document.recalled:
        *rest, last = document.recalled
        kept = Slice(last.tier, last.items[:-1])
        return replace(document, recalled=(*rest, kept) if kept.items else tuple(rest))
    if document.standing:
        return replace(document, standing=document.standing[:-1])
    return None


def about_failure(hits: Iterable[Hit], failure: str) -> list[Hit]:
    """Return hits that share two words with this failure, or one word if the vector signal found them too.

    Vector similarity alone is no evidence here: error messages resemble one another.
    """
    asked = _distinctive_terms(failure)
    return [hit for hit in hits if len(asked.intersection(terms(hit.content))) + _close(hit) >= SHARED_WORDS]


def _distinctive_terms(failure: str) -> set[str]:
    """Return the terms of a failure without those that most failures share."""
    return set(query_terms(failure, MOST_TERMS)) - set(terms(_COMMONPLACE))


def _close(hit: Hit) -> bool:
    return any(c.signal == "vector" and c.rank is not None for c in hit.score.match.contributions)


def recalled(workspace: str, hits: Sequence[Hit], tiers: Sequence[str], failure: str) -> ContextDocument:
    """Return a document of hits by tier; a long hit is cut to the part about this failure."""
    asked = _distinctive_terms(failure)
    found = [
        in_part(item(hit.entry, hit.provenance, hit.earlier, hit.withdrawn, hit.citations), MOST_TOKENS, asked)
        for hit in hits
    ]
    slices = (Slice(tier, tuple(entry for entry in found if entry.tier == tier)) for tier in tiers)
    return ContextDocument(workspace, (), (), tuple(part for part in slices if part.items))
