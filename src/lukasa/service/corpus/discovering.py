"""Discover a page or a repository: fetch it, say what it is and how near it is to what is remembered, and keep a note.

    discover        fetch → relevance → note of a model, or an excerpt → one document, one line of the log
    └ looked        a page, or the README, some documents and a summary of a repository
    └ kept          what was discovered before, newest first

A discovery is a document of the corpus, from the web and unverified. It is committed in one transaction, so one that
was interrupted left nothing. Nothing of it goes into memory.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from msgspec.structs import replace

from lukasa.corpus import discovery_note
from lukasa.corpus.discovery_note import Written
from lukasa.corpus.relevance import main_words, relevance
from lukasa.curated import slog
from lukasa.model.corpus import DocumentSource, ParsedDocument
from lukasa.model.discovery import (
    COLLECTION,
    ORIGIN,
    STANDING,
    Discovered,
    Discovery,
    Outcome,
    Relevance,
)
from lukasa.model.entry import Document, DocumentHead
from lukasa.model.errors import ChatError, InvalidInput, Refused
from lukasa.model.secrets import redact, redact_all
from lukasa.model.telemetry import Spending, TelemetryEvent
from lukasa.model.text import escape_controls, terms
from lukasa.model.values import Trust
from lukasa.ports import Message
from lukasa.read.excerpt import excerpt
from lukasa.service import inputs, retrieval
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.corpus import adding, documents, looking, passages
from lukasa.service.corpus.locations import one_line
from lukasa.service.corpus.looking import CHOICES, Looked, Request
from lukasa.service.curation import kept_records
from lukasa.service.jobs.task import json_object
from lukasa.service.retrieval.read import ReadRequest
from lukasa.spec.prompts import prompt
from lukasa.storage.operations import Emit, Spend
from lukasa.write.check import category_scores

LOCATION = "discovery:"  # begins the location of a discovery: the same page may also be a document by itself
CONTEXT_LIMIT = 500
MOST_TAGS = 8
MODEL_SECONDS = 60.0
MOST_CHARACTERS = 400_000  # of a page that are kept
_LOGGED = 2_000  # characters of a line of the log
_REMEMBERED = 10  # entries that the relevance is computed from

# Asks a model: it gets the instructions, what is given, and a function that checks the answer.
Ask = Callable[[str, str, Callable[[Mapping[str, Any]], object]], tuple[str, Mapping[str, Any]]]


def checked(url: str, context: str, kind: str, tags: Sequence[str], *, local: bool = False) -> Request:
    """Return a request of a caller, checked."""
    chosen = next((one for one in CHOICES if one == kind), None)
    if chosen is None:
        raise InvalidInput(f"a discovery cannot be {str(kind)[:60]!r}", fix="use auto, page or repository")
    where = inputs.label(url, "URL") if len(str(url)) <= inputs.MAX_LABEL else inputs.text(url, "URL", 4_096)
    why = inputs.text(context, "context", CONTEXT_LIMIT) if context and context.strip() else ""
    return Request(urldefrag(where.strip()).url, " ".join(why.split()), chosen, inputs.tags(tags), local)


def require(ctx: CallContext) -> None:
    """Refuse a caller that may not reach the web. An agent needs a grant that says so; its surface has checked that."""
    if not ctx.is_author and (ctx.reach is None or ctx.origin.trust < Trust.AGENT):
        raise Refused(
            f"{ctx.origin.principal!r} cannot reach the web", fix="ask the author for a grant with `discover`"
        )
    ctx.require_whole("discover pages")


def discover(ctx: CallContext, request: Request, ask: Ask | None) -> Discovered:
    """Look at a page or a repository, and keep a note. What is kept already and has not changed stays as it is."""
    require(ctx)
    location = f"{LOCATION}{request.url}"
    known = next(iter(ctx.local.sources_at(location)), None)
    before = ctx.local.document_heads([known.document]).get(known.document) if known is not None else None
    if known is not None and before is not None and not before.removed and _same_wish(known, request):
        looked = looking.looked(ctx, request, known)
        if looked is None or looked.digest == known.digest:
            feeds = looked.feeds if looked is not None else ()
            return Discovered(_kept(ctx, before, known), "unchanged", None, feeds)
    else:
        looked = looking.looked(ctx, request, None)
    assert looked is not None  # a server says "unchanged" only if it was asked
    looked = replace(looked, parsed=discovery_note.shortened(looked.parsed, MOST_CHARACTERS))
    if known is not None:
        request = _as_before(known, request)
    found = relevance(
        looked.parsed.title, looked.parsed.body, request.context, _remembered(ctx, looked.parsed, request.context)
    )
    notes: list[str] = []
    written, by = _written(ctx, request, looked.parsed, found, ask, notes)
    made, outcome = _save(ctx, request, looked, found, written, by, tuple(notes))
    _log(ctx, made)
    adding.embed(ctx)
    return Discovered(made, outcome, found, looked.feeds)


def _as_before(known: DocumentSource, request: Request) -> Request:
    """Return a request with the context and the tags that were given before, where it gives none."""
    said = _facts(known)
    tags = tuple(tag for tag in said.get("given", "").split(", ") if tag)
    return replace(request, context=request.context or said.get("context", ""), tags=request.tags or tags)


def _same_wish(known: DocumentSource, request: Request) -> bool:
    """Say whether a request asks for nothing else than what is kept."""
    said = _facts(known)
    return (not request.context or request.context == said.get("context", "")) and not request.tags


# What it means here


def _remembered(ctx: CallContext, parsed: ParsedDocument, context: str) -> Iterator[tuple[str, str]]:
    """Give the entries within sight that the main words of a page find. This counts as no read of them."""
    asked = " ".join((*main_words(parsed.title, parsed.body), context)).strip()
    if not asked:
        return
    # A model must not rephrase words of a stranger's page into a question to memory.
    found = retrieval.read.search(ctx, ReadRequest(asked, limit=_REMEMBERED, rewrite=False))
    for hit in found.kept:
        yield hit.id, hit.content


def _written(
    ctx: CallContext, request: Request, parsed: ParsedDocument, found: Relevance, ask: Ask | None, notes: list[str]
) -> tuple[Written, str]:
    """Return the note of a model and its name; without a model, or if it gives none that can be used, an excerpt."""
    if ask is not None:
        names = [one.id for one in ctx.taxonomy.concepts]
        instructions = prompt("discover", ctx.prompts, voice=_voice(ctx))
        given = discovery_note.briefing(request.url, request.context, parsed, found, names)
        try:
            by, data = ask(
                instructions, given, lambda data: discovery_note.read_note(data, parsed, request.context, names)
            )
            return discovery_note.read_note(data, parsed, request.context, names), by
        except (ChatError, InvalidInput) as error:
            notes.append(f"no model wrote about it: {error.message}")
    text = discovery_note.opening(parsed)
    asked = terms(request.context) if request.context else [stem for word in found.words for stem in terms(word)]
    return Written(parsed.title, excerpt(text, asked, discovery_note.EXCERPT).of(text), ()), ""


def _voice(ctx: CallContext) -> str:
    for store in (ctx.local, ctx.account):
        for page in store.named("VOICE"):
            if ctx.opens(page.tier) and not page.damaged and page.body.strip():
                return redact(page.body)[0][:4_000]
    return "Plain and short."


def asker(ctx: CallContext) -> Ask | None:
    """Return a function that asks the model of the settings; None if none is set."""
    chat = ctx.chat() if ctx.chat is not None else None
    if chat is None or chat.name == "offline":
        return None

    def ask(
        instructions: str, given: str, read: Callable[[Mapping[str, Any]], object]
    ) -> tuple[str, Mapping[str, Any]]:
        began = time.monotonic()
        asked = [Message("system", instructions), Message("user", redact(given)[0])]
        reply = chat.reply(asked, timeout=MODEL_SECONDS)
        spent = Spending(f"{ctx.now:%Y-%m-%d}", chat.name, 1, reply.usage.prompt, reply.usage.completion)
        took = (time.monotonic() - began) * 1000
        point = TelemetryEvent(
            ctx.now, "info", "corpus", "discover", "model.answered", True, took, {"model": chat.name}
        )
        ctx.apply(ctx.local, Spend(spent), Emit(point))
        data = json_object(reply.whole_text())
        read(data)
        return chat.name, data

    return ask


# Keeping


def _save(
    ctx: CallContext,
    request: Request,
    looked: Looked,
    found: Relevance,
    written: Written,
    by: str,
    notes: tuple[str, ...],
) -> tuple[Discovery, Outcome]:
    location = f"{LOCATION}{request.url}"
    title = one_line(written.title) or one_line(looked.parsed.title) or one_line(request.url) or "discovery"
    tags = _tags(ctx, title, request, looked, written)
    facts = _gathered(request, looked, found, written, by, tags)
    shown = [
        ("Found at", _shown(request.url)),
        ("It is now at", facts["moved to"]),
        ("Found on", f"{ctx.now:%Y-%m-%d}"),
        ("In the context", request.context),
        ("Tags", facts["tags"]),
        ("Relevance", facts["relevance"]),
        ("Written by", by or "nobody; the text is the page's own"),
        *(("Note", note) for note in (*looked.parsed.notes, *notes)),
    ]
    whole = discovery_note.document(title, written.note if by else "", shown, looked.parsed)
    cut = passages.split(ctx, whole, tags)

    def attempt() -> tuple[Discovery, Outcome]:
        known = next(iter(ctx.local.sources_at(location)), None)
        before = _before(ctx, location, known)
        document = Document(
            id=before.id,
            title=title,
            body=whole.body,
            origin=ORIGIN,
            lifecycle="current",
            weight=before.weight,
            standing=STANDING,
            version=0,
            updated_at=ctx.now,
            collection=COLLECTION,
        )
        said = tuple(f"{name}: {value}" for name, value in facts.items() if value)
        source = DocumentSource(
            before.id,
            location,
            looked.parsed.media_type,
            looked.digest,
            ctx.now,
            looked.etag,
            looked.modified,
            (*said, *looked.parsed.notes, *notes),
        )
        saved, operations = documents.next_version(ctx, document, before.version, cut, source)
        ctx.apply(ctx.local, *operations)
        made = _discovery(saved, source, written.note, (*looked.parsed.notes, *notes))
        return made, "added" if known is None else "changed"

    return retry_on_conflict(attempt)


def _tags(ctx: CallContext, title: str, request: Request, looked: Looked, written: Written) -> tuple[str, ...]:
    """Return the tags that were given, those of the note and of the page, and the categories that its words fit."""
    scores = category_scores(f"{title}\n{looked.parsed.body[:20_000]}", ctx.taxonomy)
    best = sorted(scores, key=lambda name: (-scores[name], name))[:3]
    return tuple(dict.fromkeys((*request.tags, *written.tags, *looked.tags, *best)))[:MOST_TAGS]


def _gathered(
    request: Request, looked: Looked, found: Relevance, written: Written, by: str, tags: tuple[str, ...]
) -> dict[str, str]:
    """Return what the source of a discovery keeps of how it was found."""
    return {
        "kind": looked.kind,
        "context": request.context,
        "relevance": f"{found.score:.2f}: {found.reason}",
        "by": by,
        "tags": ", ".join(tags),
        "given": ", ".join(request.tags),
        "excerpt": "" if by else escape_controls(discovery_note.one_line(redact(written.note)[0])),
        "moved to": looked.url if looked.url != request.url else "",
    }


def _before(ctx: CallContext, location: str, known: DocumentSource | None) -> DocumentHead:
    """Return the present version of a discovery, or a version 0 of a new one under a name that is free."""
    url = location.removeprefix(LOCATION)
    parts = urlsplit(url)
    path = unquote(parts.path).rstrip("/")
    where = f"{parts.hostname}{path}" if parts.hostname else f"local/{path.rpartition('/')[2]}"
    name = one_line(f"{COLLECTION}/{where}")
    also = hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    if known is not None:
        wanted = known.document
    elif parts.query or len(name) > inputs.MAX_LABEL - 9:
        wanted = f"{name[: inputs.MAX_LABEL - 9]}~{also}"
    else:
        wanted = name
    heads = ctx.local.document_heads([wanted])
    if known is None and wanted in heads and not heads[wanted].removed:
        wanted = f"{name[: inputs.MAX_LABEL - 9]}~{also}"
        heads = ctx.local.document_heads([wanted])
    new = DocumentHead(wanted, "", ORIGIN, "current", 0.5, STANDING, 0, ctx.now)
    before = heads.get(wanted)
    return new if before is None else replace(new, version=before.version) if before.removed else before


def _log(ctx: CallContext, made: Discovery) -> None:
    """Write a line into the structured log, if this memory has one."""
    if ctx.log_file is None:
        return
    tool = {"page": "web", "repository": "git", "item": "feed"}[made.kind]
    detail = escape_controls(f"{made.title} → {made.document}: {made.url}")[:_LOGGED]
    ctx.log_file.append(slog.compose(ctx.now, *redact_all(["discover", tool, detail, made.context])))
    kept_records.commit_later(ctx)


# What is kept


def kept(ctx: CallContext, limit: int = 20) -> list[Discovery]:
    """Return what was discovered, newest first."""
    wanted = inputs.limit(limit)
    heads: list[DocumentHead] = []
    while page := ctx.local.list_documents(collection=COLLECTION, after=heads[-1].id if heads else "", limit=1000):
        heads += page
    heads.sort(key=lambda head: (head.updated_at, head.id), reverse=True)
    sources = ctx.local.document_sources([head.id for head in heads[:wanted]])
    return [_kept(ctx, head, sources.get(head.id)) for head in heads[:wanted]]


def _kept(ctx: CallContext, head: DocumentHead, source: DocumentSource | None) -> Discovery:
    first = ctx.local.passages(head.id, limit=1)
    if source is not None and not ctx.is_author:
        location = f"{LOCATION}{_shown(source.location.removeprefix(LOCATION))}"
        source = replace(source, location=location)
    said = _facts(source) if source is not None else {}
    written = first[0].text.partition("- Found at:")[0].strip() if first and said.get("by") else ""
    note = written or said.get("excerpt", "")
    if source is None or not source.location.startswith(LOCATION):
        # Somebody wrote a document into this collection.
        source = DocumentSource(head.id, LOCATION, "", "", head.updated_at)
    return _discovery(head, source, note, ())


def _shown(url: str) -> str:
    """Return a URL as everybody may see it: where a repository lies on this machine is nobody else's business."""
    return "a folder of this machine" if url.startswith("file:") else url


def _facts(source: DocumentSource) -> dict[str, str]:
    found: dict[str, str] = {}
    for note in source.notes:
        name, colon, value = note.partition(": ")
        if colon:
            found.setdefault(name, value)  # notes about the text come later, and may look like one of these
    return found


def _discovery(head: Document | DocumentHead, source: DocumentSource, note: str, notes: tuple[str, ...]) -> Discovery:
    said = _facts(source)
    kind = said.get("kind", "page")
    try:
        score = float(said.get("relevance", "0").partition(":")[0])
    except ValueError:
        score = 0.0
    return Discovery(
        document=head.id,
        version=head.version,
        title=head.title,
        url=source.location.removeprefix(LOCATION),
        kind="repository" if kind == "repository" else "item" if kind == "item" else "page",
        context=said.get("context", ""),
        tags=tuple(tag for tag in said.get("tags", "").split(", ") if tag),
        relevance=score,
        note=note,
        by=said.get("by", ""),
        read_at=source.read_at,
        origin=head.origin,
        lifecycle=head.lifecycle,
        weight=head.weight,
        standing=head.standing,
        notes=notes,
    )


def is_known(ctx: CallContext, url: str) -> bool:
    """Say whether a URL was discovered before."""
    return bool(ctx.local.sources_at(f"{LOCATION}{url}"))
