"""Add files, folders and addresses to the corpus.

    add             find what there is, then one file after the other
    └ _outcome      take it, compare its digest, parse it, cut it: or say why not
      └ _commit     several documents in one transaction, each as the next version of what its location gave before

A document is known by its location. A file whose bytes are the same is left alone, so a run that was interrupted is
simply repeated: what was committed is skipped, and no document is ever there in part.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.corpus import (
    AddedFile,
    AddedFiles,
    DocumentSource,
    FoundFile,
    FoundFiles,
    ParsedDocument,
    Passage,
)
from lukasa.model.entry import Document, DocumentHead
from lukasa.model.errors import (
    EmbedderError,
    FetchFailed,
    InvalidInput,
    LukasaError,
    MissingExtra,
    NotFound,
    Refused,
    UnreadableFile,
)
from lukasa.service import inputs, upkeep
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.corpus import documents, passages
from lukasa.service.corpus.locations import UPLOAD, Taken, files_of, is_url, one_line, parse, take
from lukasa.storage.operations import Operation, SaveDocumentSource

TOGETHER = 100  # documents of one transaction, at most
CHARACTERS = 1_000_000  # of these documents, from which on no other joins them
EMBEDDED_AT_ONCE = 200  # passages without a vector; of more, a worker takes care
_STAMPED = 500  # sources that are noted together
_COMPARED = 50  # passages that tell which tags a document was given
_FAULTS = (InvalidInput, MissingExtra, FetchFailed, Refused)

Tell = Callable[[int, int, str], None]  # is told how many are done, of how many, and the name of the next


def silent(done: int, total: int, name: str) -> None:
    """Report progress to nobody."""


class Shelf(Struct, frozen=True):
    """Where added documents belong and what they are worth. None keeps what a document has, or else the default."""

    collection: str | None = None
    tags: tuple[str, ...] | None = None
    origin: str | None = None
    lifecycle: str | None = None
    weight: float | None = None
    standing: str | None = None
    fallback: str = "documents"
    """The collection of a new document, if none is given for all."""

    @classmethod
    def checked(
        cls,
        collection: str | None,
        tags: Sequence[str] | None,
        origin: str | None,
        lifecycle: str | None,
        weight: float | None,
        standing: str | None,
    ) -> Shelf:
        """Return what a caller gave, checked."""

        def named(text: str | None, what: str) -> str | None:
            return None if text is None else inputs.one_line(text, what)

        return cls(
            named(collection, "collection"),
            None if tags is None else inputs.tags(tags),
            named(origin, "origin"),
            named(lifecycle, "lifecycle"),
            None if weight is None else inputs.importance(weight, "weight"),
            named(standing, "standing"),
        )


NO_SHELF = Shelf()


class _Place(Struct, frozen=True):
    """One file or address to add, and what was read there before."""

    at: FoundFile | str
    known: DocumentSource | None = None

    @property
    def location(self) -> str:
        return self.at.location if isinstance(self.at, FoundFile) else self.at


class _Cut(Struct, frozen=True):
    """A document that is ready to be stored."""

    taken: Taken
    parsed: ParsedDocument
    passages: tuple[Passage, ...] | None


def add(
    ctx: CallContext,
    locations: Sequence[str],
    shelf: Shelf = NO_SHELF,
    *,
    prune: bool = False,
    dry_run: bool = False,
    tell: Tell = silent,
) -> AddedFiles:
    """Add files, folders and addresses, and say what became of each. What is unchanged is left alone.

    With `prune`, documents whose files are gone from a folder are removed; otherwise they are only told.
    """
    _require(ctx)
    asked = inputs.several(locations, "locations")
    found = [files_of(ctx).find(one) for one in asked if not is_url(one)]
    urls = [one for one in asked if is_url(one)]
    return _run(ctx, found, urls, shelf, _Way(prune, dry_run), tell)


def add_found(ctx: CallContext, folder: FoundFiles, shelf: Shelf, *, tell: Tell = silent) -> AddedFiles:
    """Take over what a followed folder holds: files with the same stamp are not read, and vanished ones removed."""
    return _run(ctx, [folder], [], shelf, _Way(prune=True, by_stamp=True), tell)


class _Way(Struct, frozen=True):
    """How files are added."""

    prune: bool = False
    dry_run: bool = False
    by_stamp: bool = False


def _run(
    ctx: CallContext, found: Sequence[FoundFiles], urls: Sequence[str], shelf: Shelf, way: _Way, tell: Tell
) -> AddedFiles:
    places = list({place.location: place for place in _places(ctx, found, urls)}.values())
    outcomes = _added(ctx, places, shelf, way, tell)
    outcomes += _vanished(ctx, found, way.prune and not way.dry_run)
    if not way.dry_run:
        embed(ctx)
    skipped: Counter[str] = Counter()
    for one in found:
        skipped.update(one.skipped)
        outcomes += [_unlooked(folder) for folder in one.unreadable]
    return AddedFiles(tuple(outcomes), dict(skipped), way.dry_run)


def add_bytes(ctx: CallContext, name: str, data: bytes, media_type: str = "", shelf: Shelf = NO_SHELF) -> AddedFile:
    """Add what a client sent under a name. The same name is the same document."""
    _require(ctx)
    called = inputs.one_line(name, "name")
    if not isinstance(data, bytes):
        raise InvalidInput(f"a file is bytes, not {type(data).__name__}", fix="pass bytes")
    taken = Taken(f"{UPLOAD}{called}", called, data, inputs.one_line(media_type, "media type") if media_type else "")
    known = next(iter(ctx.local.sources_at(taken.location)), None)
    if (same := _unchanged(ctx, taken, known, shelf)) is not None:
        return same
    (added,) = _commit(ctx, [_cut(ctx, taken, known, shelf)], shelf)
    embed(ctx)
    return added


def embed(ctx: CallContext) -> None:
    """Compute the vectors of new passages, if there are few; of many, the job does it."""
    if ctx.embedder is None or len(ctx.local.unembedded_passages(ctx.embedder.model, EMBEDDED_AT_ONCE)) >= (
        EMBEDDED_AT_ONCE
    ):
        return
    with suppress(EmbedderError):
        upkeep.backfill.passages(ctx, ctx.embedder, EMBEDDED_AT_ONCE)


def _require(ctx: CallContext) -> None:
    ctx.require_author("add documents")
    ctx.require_whole("add documents")


def _places(ctx: CallContext, found: Sequence[FoundFiles], urls: Iterable[str]) -> Iterator[_Place]:
    for one in found:
        below = ctx.local.sources_below(one.location) if one.is_folder else ctx.local.sources_at(one.location)
        known = {source.location: source for source in below}
        for file in one.files:
            yield _Place(file, known.get(file.location))
    for url in urls:
        yield _Place(url, next(iter(ctx.local.sources_at(url)), None))


def _added(ctx: CallContext, places: Sequence[_Place], shelf: Shelf, way: _Way, tell: Tell) -> list[AddedFile]:
    told: list[AddedFile] = []
    waiting: list[_Cut] = []
    stamped: list[Operation] = []
    for number, place in enumerate(places):
        tell(number, len(places), place.location)
        outcome = _outcome(ctx, place, shelf, way)
        if isinstance(outcome, AddedFile):
            told.append(outcome)
            stamped += [] if way.dry_run else _stamped(place, outcome)
        elif way.dry_run:
            told.append(_would(outcome, place))
        else:
            waiting.append(outcome)
        if len(waiting) >= TOGETHER or sum(len(one.parsed.body) for one in waiting) >= CHARACTERS:
            told += _commit(ctx, waiting, shelf)
            waiting = []
    if waiting:
        told += _commit(ctx, waiting, shelf)
    for start in range(0, len(stamped), _STAMPED):
        with suppress(NotFound):  # a document was removed meanwhile: the next look notes the stamps of the others
            ctx.apply(ctx.local, *stamped[start : start + _STAMPED])
    tell(len(places), len(places), "")
    return told


def _stamped(place: _Place, outcome: AddedFile) -> list[Operation]:
    """Note the stamp of a file that was read and is unchanged, so that the next look need not read it."""
    known, file = place.known, place.at
    if outcome.outcome != "unchanged" or known is None or not isinstance(file, FoundFile):
        return []
    return [SaveDocumentSource(replace(known, modified=file.stamp))] if file.stamp not in ("", known.modified) else []


def _outcome(ctx: CallContext, place: _Place, shelf: Shelf, way: _Way) -> AddedFile | _Cut:
    """Return a document to store, or why there is none."""
    known = place.known
    if (
        way.by_stamp
        and known is not None
        and isinstance(place.at, FoundFile)
        and known.modified == place.at.stamp != ""
    ):
        return AddedFile(place.location, "unchanged", known.document)
    try:
        taken = take(ctx, place.at, place.known)
        if taken is None:
            return AddedFile(place.location, "unchanged", place.known.document if place.known else "")
        same = _unchanged(ctx, taken, place.known, shelf)
        return same if same is not None else _cut(ctx, taken, place.known, shelf)
    except _FAULTS as error:
        gone = isinstance(error, UnreadableFile) and place.known is not None and files_of(ctx).gone(place.location)
        if gone and place.known is not None:
            return AddedFile(place.location, "gone", place.known.document)
        return AddedFile(
            place.location,
            "failed",
            place.known.document if place.known else "",
            error=error.message,
            fix=error.fix,
        )


def _unchanged(ctx: CallContext, taken: Taken, known: DocumentSource | None, shelf: Shelf) -> AddedFile | None:
    """Return that a file is unchanged, if its bytes are and nothing else is wanted of its document."""
    if known is None or known.digest != taken.digest:
        return None
    head = ctx.local.document_heads([known.document]).get(known.document)
    if head is None or head.removed or _placed(shelf, head) != head:
        return None
    if shelf.tags is not None and set(shelf.tags) != set(_given_tags(ctx, known.document)):
        return None
    return AddedFile(taken.location, "unchanged", head.id, head.version)


def _placed(shelf: Shelf, head: DocumentHead) -> DocumentHead:
    names = ("collection", "origin", "lifecycle", "weight", "standing")
    return replace(head, **{name: value for name in names if (value := getattr(shelf, name)) is not None})


def _given_tags(ctx: CallContext, document: str) -> tuple[str, ...]:
    """Return the tags that a document was given: those of all its passages that the taxonomy does not give to each."""
    some = ctx.local.passages(document, limit=_COMPARED)
    if not some:
        return ()
    shared = set(some[0].tags).intersection(*(one.tags for one in some))
    own = {tag for tag in shared if any(tag not in passages.taxonomy_tags(ctx, one) for one in some)}
    return tuple(tag for tag in some[0].tags if tag in own)


def _cut(ctx: CallContext, taken: Taken, known: DocumentSource | None, shelf: Shelf) -> _Cut:
    parsed = parse(ctx, taken)
    tags = shelf.tags if shelf.tags is not None or known is None else _given_tags(ctx, known.document)
    return _Cut(taken, parsed, passages.split(ctx, parsed, tags or ()))


def _would(cut: _Cut, place: _Place) -> AddedFile:
    known = place.known.document if place.known else ""
    return _told(cut, "changed" if known else "added", known or cut.taken.name, 0)


def _told(cut: _Cut, outcome: str, document: str, version: int) -> AddedFile:
    return AddedFile(
        cut.taken.location,
        "added" if outcome == "added" else "changed",
        document,
        version,
        len(cut.passages or ()),
        len(cut.parsed.body),
        cut.parsed.notes,
    )


def _commit(ctx: CallContext, cuts: Sequence[_Cut], shelf: Shelf) -> list[AddedFile]:
    """Store documents in one transaction. If one changed meanwhile, all of them are looked up again."""

    def attempt() -> list[AddedFile]:
        told: list[AddedFile] = []
        operations: list[Operation] = []
        chosen: set[str] = set()
        for cut in cuts:
            known = next(iter(ctx.local.sources_at(cut.taken.location)), None)
            same = _unchanged(ctx, cut.taken, known, shelf)
            if same is not None:
                told.append(same)  # another process was faster
                continue
            before = _before(ctx, cut.taken, known, chosen, shelf.fallback)
            chosen.add(before.id)
            saved, some = _saved(ctx, cut, before, shelf)
            operations += some
            told.append(_told(cut, "changed" if known is not None else "added", saved.id, saved.version))
        if operations:
            ctx.apply(ctx.local, *operations)
        return told

    return retry_on_conflict(attempt)


def _before(
    ctx: CallContext, taken: Taken, known: DocumentSource | None, chosen: set[str], fallback: str
) -> DocumentHead:
    """Return the present version of the document, or a version 0 of a new one under a name that is free."""
    wanted = known.document if known is not None else _named(taken)
    heads = ctx.local.document_heads([wanted])
    if known is None and (wanted in chosen or (wanted in heads and not heads[wanted].removed)):
        wanted = _named(taken, also=hashlib.sha256(taken.location.encode("utf-8", "surrogateescape")).hexdigest()[:8])
        heads = ctx.local.document_heads([wanted])
    origin = "web" if is_url(taken.location) else "upload" if taken.location.startswith(UPLOAD) else "file"
    new = DocumentHead(wanted, "", origin, "current", 1.0, "reference", 0, ctx.now, fallback)
    before = heads.get(wanted)
    return new if before is None else replace(new, version=before.version) if before.removed else before


def _named(taken: Taken, also: str = "") -> str:
    """Return the id of a document of that name. A long name keeps its end, which tells it from others."""
    name = one_line(taken.name) or "document"
    cut = len(" ".join(taken.name.split())) > inputs.MAX_LABEL
    if cut:
        also = also or hashlib.sha256(taken.location.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = one_line(taken.name[-(inputs.MAX_LABEL - 12) :])
    return f"{name[: inputs.MAX_LABEL - 9]}~{also}" if also else name


def _saved(ctx: CallContext, cut: _Cut, before: DocumentHead, shelf: Shelf) -> tuple[Document, list[Operation]]:
    head = _placed(shelf, before)
    document = Document(
        id=head.id,
        title=one_line(cut.parsed.title) or head.id,
        body=cut.parsed.body,
        origin=head.origin,
        lifecycle=head.lifecycle,
        weight=head.weight,
        standing=head.standing,
        version=0,
        updated_at=ctx.now,
        collection=head.collection,
    )
    taken = cut.taken
    source = DocumentSource(
        head.id,
        taken.location,
        cut.parsed.media_type,
        taken.digest,
        ctx.now,
        taken.etag,
        taken.modified,
        cut.parsed.notes,
    )
    return documents.next_version(ctx, document, before.version, cut.passages, source)


def _vanished(ctx: CallContext, found: Sequence[FoundFiles], prune: bool) -> list[AddedFile]:
    """Return the documents of folders whose files are no longer there; with `prune` they are removed."""
    told = []
    for folder in found:
        if not folder.is_folder:
            continue
        there = {file.location for file in folder.files}
        for source in ctx.local.sources_below(folder.location):
            if source.location in there or not files_of(ctx).gone(source.location):
                continue
            if prune:
                with suppress(LukasaError):  # another process removed it
                    documents.remove(ctx, source.document)
            told.append(AddedFile(source.location, "removed" if prune else "gone", source.document))
    return told


def _unlooked(folder: str) -> AddedFile:
    return AddedFile(folder, "failed", error=f"{folder[:200]!r} cannot be looked into", fix="check its rights")
