"""The submit boundary: changes of documents that rest on memories, which only a person lets into the corpus.

submit     anybody who may write memory makes a submission; nothing in the corpus changes
waiting    a submission as a person sees it: the difference, the memories, what has changed since
accept     a new version of the document, linked with its memories; those that it made unnecessary are retired
reject     the submission stays, with the reason
take_back  undo an acceptance: the document and the memories are as before, and the submission waits again
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lukasa.corpus.change import applied, difference, in_one_text
from lukasa.model.corpus import DocumentSource
from lukasa.model.entry import Document, DocumentHead, Entry
from lukasa.model.errors import Damaged, DocumentMoved, InvalidInput, InvalidTransition, NotFound, Refused
from lukasa.model.ids import new_id, parse_id
from lukasa.model.secrets import holds_secret, redact
from lukasa.model.submission import Change, Decision, How, Run, Submission, SubmissionState
from lukasa.model.values import VISIBILITY, State, Trust, Visibility
from lukasa.service import inputs
from lukasa.service.admin.overview import EvidenceQuote, evidence
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.corpus import documents, passages
from lukasa.service.curation import notices
from lukasa.service.entries.revise import LeftAlone, reopen
from lukasa.storage.operations import EmptySubmissions, LinkAction, Operation, SaveEntry, SaveSubmission
from lukasa.storage.port import Store

MOST_WAITING = 500  # submissions of a workspace that nobody has decided about
MOST_MEMORIES = 100
INSERTED = 100_000  # characters of a text that is put into a document
QUOTED = 20_000  # characters of a passage that is replaced
_TEXTS = ("text/markdown", "text/plain")  # documents of other files cannot be changed here
_OF_AGENTS = {"weight": 0.5, "standing": "submitted"}  # of a document that begins with an agent's text


class Target(Struct, frozen=True):
    """Where a submitted text goes: to the end of a document unless one of these is given.

    `title` and `collection` are for a document that is not there yet.
    """

    document: str
    whole: bool = False
    under: str = ""
    replaces: str = ""
    title: str = ""
    collection: str = "documents"


class OpenSubmission(Struct, frozen=True):
    """A submission with what a person needs to decide about it.

    `document` is the document as it is now, None for a new one. `changes` is what the submission changes in it, and
    `since` what somebody else has changed in it since; then `trouble` says what to do. `kept` names memories that are
    not what they were, or that an acceptance does not retire, and `retires` those that it retires if the person says
    nothing else. `source` is the file or address that the document was read from.
    """

    submission: Submission
    why: str
    document: DocumentHead | None
    changes: tuple[Run, ...]
    since: tuple[Run, ...]
    trouble: str
    memories: tuple[Entry, ...]
    kept: tuple[LeftAlone, ...]
    retires: tuple[str, ...]
    quotes: tuple[EvidenceQuote, ...]
    source: str = ""


class Accepted(Struct, frozen=True):
    """An accepted submission, the document that it made, and the memories that it retired or left as they are."""

    submission: Submission
    document: DocumentHead
    kept: tuple[LeftAlone, ...] = ()
    warning: str = ""


# Submitting


def submit(
    ctx: CallContext,
    target: Target,
    text: str,
    memories: Sequence[str],
    derivable: Sequence[str],
    note: str,
) -> Submission:
    """Submit a change of a document, or a new document, for a person to decide. Nothing in the corpus changes.

    Without a text, it is that of the memories. The same change that waits already is returned as it is.
    """
    ctx.require_agent("submit to the corpus")
    found = _memories(ctx, memories)
    unneeded = tuple(dict.fromkeys(parse_id(id, "derivable") for id in inputs.several(derivable, "derivable")))
    if not {one.id for one in found}.issuperset(unneeded):
        raise InvalidInput("derivable names an entry that is not among the memories", fix="name it as a memory too")
    about = _known(ctx, target.document)
    change = _change(ctx, target, text or _own_words(ctx, found, target), there=about.there)
    known = _same(ctx, about.key, change)
    if known is not None:
        return known
    _fits(about, change)
    if len(ctx.local.submissions(states={SubmissionState.OPEN}, limit=MOST_WAITING)) >= MOST_WAITING:
        raise Refused(f"{MOST_WAITING} submissions wait already", fix="ask the author to look into the review inbox")
    now = ctx.now
    made = Submission(
        id=new_id(),
        document=about.key,
        title="" if about.there else (inputs.one_line(target.title, "title") if target.title else about.key),
        collection=about.document.collection if about.document else inputs.one_line(target.collection, "collection"),
        base=about.now,
        change=change,
        memories=tuple(one.id for one in found),
        derivable=unneeded,
        origin=ctx.origin.capped(*(one.trust for one in found)),
        note=inputs.label(note, "note") if note else "",
        created_at=now,
        updated_at=now,
        keys=dict(ctx.tenancy),
    )
    save = SaveSubmission(made, 0)
    ctx.apply(ctx.local, save, *notices.submitted(ctx, made))
    return _shown(ctx, made)


class _Known(NamedTuple):
    """A document as it is now; one that was removed is not there, but has a version."""

    key: str
    document: Document | None
    at: int
    source: DocumentSource | None

    @property
    def there(self) -> bool:
        return self.document is not None

    @property
    def now(self) -> int:
        """The version that a change is made for: 0 where there is no document."""
        return self.document.version if self.document is not None else 0

    @property
    def body(self) -> str:
        return self.document.body if self.document is not None else ""


def _known(ctx: CallContext, id: str) -> _Known:
    key = inputs.label(id, "document id")
    found = ctx.local.documents([key]).get(key)
    if found is None:
        inputs.one_line(key, "document id")
        return _Known(key, None, 0, None)
    if found.removed:
        return _Known(key, None, found.version, None)
    documents.get(ctx, key)  # refuses one that is damaged
    return _Known(key, found, found.version, ctx.local.document_sources([key]).get(key))


def _memories(ctx: CallContext, ids: Sequence[str]) -> list[Entry]:
    """Return the memories that a change rests on: in recall, and there for the caller."""
    keys = dict.fromkeys(ctx.entry_id(id, "memory") for id in inputs.several(ids, "memories"))
    if not keys:
        raise InvalidInput("the change rests on no memory", fix="name the entries that it comes from")
    if len(keys) > MOST_MEMORIES:
        raise InvalidInput(f"{len(keys)} memories are too many", fix=f"name at most {MOST_MEMORIES}")
    found = [ctx.entry(id)[1] for id in keys]
    for one in found:
        if VISIBILITY[one.state] is not Visibility.OPEN:
            raise InvalidTransition(
                f"entry {one.id} is {one.state}, and nothing can rest on it",
                fix=f"`lukasa restore {one.id}` brings it back" if one.state is not State.HELD else "accept it first",
            )
    return found


def _own_words(ctx: CallContext, found: Sequence[Entry], target: Target) -> str:
    """Return the words of memories as a list, or as sentences where they stand in for a sentence of the document."""
    words = [" ".join(redact(ctx.shown(one).content)[0].split()) for one in found]
    replaced = target.replaces.strip()
    if not replaced or replaced.startswith(("- ", "* ", "+ ")):
        return "\n".join(f"- {one}" for one in words)
    end = "." if replaced[-1] in ".!?" else ""
    return " ".join(one if one[-1:] in (".", "!", "?") else f"{one}{end}" for one in words)


def _change(ctx: CallContext, target: Target, text: str, *, there: bool) -> Change:
    places = [bool(target.whole), bool(target.under), bool(target.replaces)]
    if sum(places) > 1:
        raise InvalidInput("the text can go to one place", fix="give one of whole, under and replaces")
    if not there:
        if target.under or target.replaces:
            known = f"no document {target.document[:60]!r} in this workspace"
            raise NotFound(known, fix="`lukasa corpus list` shows the ids; leave the place out to begin a new document")
        return Change(How.WHOLE, inputs.text(text, "text", documents.DOCUMENT_LIMIT))
    if target.whole:
        return Change(How.WHOLE, inputs.text(text, "text", documents.DOCUMENT_LIMIT))
    inserted = inputs.text(text, "text", INSERTED)
    if target.under:
        return Change(How.UNDER, inserted, inputs.label(target.under, "heading"))
    if target.replaces:
        return Change(How.REPLACE, inserted, inputs.text(target.replaces, "passage", QUOTED))
    return Change(How.END, inserted)


def _same(ctx: CallContext, document: str, change: Change) -> Submission | None:
    """Return the same change if it waits already. One that a person has turned down is refused to agents."""
    found = [one for one in ctx.local.submissions(document=document) if one.change == change and sees(ctx, one)]
    waits = next((one for one in found if one.state is SubmissionState.OPEN), None)
    turned_down = next((one for one in reversed(found) if one.state is SubmissionState.REJECTED), None)
    if waits is None and turned_down is not None and not ctx.is_author:
        raise Refused(
            f"this change was rejected on {turned_down.updated_at:%Y-%m-%d}: {turned_down.reason}",
            fix="submit something else, or ask the author",
        )
    return None if waits is None else _shown(ctx, waits)


def _fits(about: _Known, change: Change) -> str:
    """Return the document's text with the change, if it can be changed so."""
    if about.source is not None and about.source.media_type not in _TEXTS:
        raise Refused(
            f"document {about.key[:60]!r} was read from a file of type {about.source.media_type}, which is not changed",
            fix="submit to a document of text, or begin a new one",
        )
    if holds_secret(change.text):
        raise Refused("the text holds a secret", fix="leave the secret out, or put [secret] in its place")
    if change.how is How.WHOLE and holds_secret(about.body):
        raise Refused(
            "the document holds secrets, which the new text would remove",
            fix="submit only the part that changes: at the end, under a heading, or in place of a passage",
        )
    body = applied(about.body, change)
    if body.split() == about.body.split():
        raise Refused(f"document {about.key[:60]!r} says so already", fix="nothing to submit")
    return inputs.text(body, "the changed document", documents.DOCUMENT_LIMIT)


# Who sees a submission


def sees(ctx: CallContext, submission: Submission) -> bool:
    """Say whether a submission is there for this context: for the owner, and for the scope that it was made in."""
    if not ctx.owns(submission.keys):
        return False
    if ctx.is_author:
        return True
    there = _entries(ctx, submission.memories)
    return all(ctx.sees(entry) for _, entry in there.values()) and (
        bool(there) or submission.origin.principal == ctx.origin.principal
    )


def _entries(ctx: CallContext, ids: Collection[str]) -> dict[str, tuple[Store, Entry]]:
    """Return the entries by id, each with its store."""
    found = {id: (ctx.local, one) for id, one in ctx.local.entries(ids, damaged=True).items()}
    missing = [id for id in ids if id not in found]
    found |= {id: (ctx.account, one) for id, one in ctx.account.entries(missing, damaged=True).items()}
    return found


def _shown(ctx: CallContext, submission: Submission) -> Submission:
    """Return a submission as this context may see it: nobody but the owner reads words of what was forgotten."""
    if ctx.is_author or submission.wordless:
        return submission
    there = _entries(ctx, submission.memories)
    gone = any(one.state in (State.FORGOTTEN, State.INVALIDATED) for _, one in there.values())
    if not gone:
        return submission
    left = replace(submission.change, text="[a memory on which it rests was forgotten]", place="")
    return replace(submission, title="", note="", change=left)


def find(
    ctx: CallContext,
    *,
    document: str | None = None,
    memory: str | None = None,
    state: str | None = None,
    limit: int = 100,
) -> list[Submission]:
    """Return submissions, the oldest first: all, of one document, or resting on one memory."""
    sweep(ctx)
    ids = None
    if memory is not None:
        ids = [one.submission for one in ctx.local.submissions_on([ctx.row(memory)[1].id])]
        if not ids:
            return []
    states = None if state is None else {inputs.choice(state, SubmissionState, "state")}
    key = None if document is None else inputs.label(document, "document id")
    found = ctx.local.submissions(ids, states=states, document=key)
    return [_shown(ctx, one) for one in found if sees(ctx, one)][: inputs.limit(limit)]


def get(ctx: CallContext, id: str) -> Submission:
    """Return one submission."""
    found = one_of(ctx, id)
    if found is None:
        raise NotFound(f"no submission {str(id)[:60]!r}", fix="`lukasa corpus submissions` shows the ids")
    return _shown(ctx, found)


def one_of(ctx: CallContext, id: str) -> Submission | None:
    """Return the submission of an id as it is stored, if there is one for this context."""
    found = next(iter(ctx.local.submissions([parse_id(id)])), None)
    return found if found is not None and sees(ctx, found) else None


def sweep(ctx: CallContext) -> None:
    """Take the words out of submissions whose memories of the account were removed for good.

    Those of the workspace's own memories go in the transaction that removes them.
    """
    resting = {one.entry for one in ctx.local.submissions_on()}
    gone = sorted(ctx.account.gone(sorted(resting))) if resting else []
    found = dict.fromkeys(one.submission for one in ctx.local.submissions_on(gone)) if gone else {}
    if found and any(not one.wordless for one in ctx.local.submissions(found)):
        ctx.apply(ctx.local, EmptySubmissions(tuple(gone)))


# Deciding


def waiting(ctx: CallContext, limit: int) -> list[OpenSubmission]:
    """Return the submissions that wait for a person, the oldest first."""
    sweep(ctx)
    found = ctx.local.submissions(states={SubmissionState.OPEN}, limit=MOST_WAITING)
    return [looked_at(ctx, one) for one in found if sees(ctx, one)][:limit]


def looked_at(ctx: CallContext, submission: Submission) -> OpenSubmission:
    """Return a submission with what a person needs to decide about it."""
    there = _entries(ctx, submission.memories)
    trouble = ""
    changes: tuple[Run, ...] = ()
    try:
        about = _known(ctx, submission.document)
    except Damaged as error:
        about, trouble = _Known(submission.document, None, 0, None), error.message
    since = _since(ctx, submission, about) if not trouble else ()
    try:
        if not trouble:
            changes = difference(about.body, applied(about.body, submission.change))
    except InvalidInput as error:
        trouble = f"{error.message}: give the whole text in your words"
    if since and not trouble:
        trouble = "the document has changed since: look at both, then edit"
    if submission.base and not about.there and not trouble:
        trouble, changes = "the document was removed since", ()
    kept = tuple(_spared(submission, there))
    spared = {one.id for one in kept}
    said = tuple(quote for _, entry in there.values() for quote in evidence(ctx, entry.id))
    return OpenSubmission(
        submission=submission,
        why=submission.note or f"{submission.origin.principal} wants it in the corpus",
        document=_head(about.document),
        changes=changes,
        since=since,
        trouble=trouble,
        memories=tuple(entry for _, entry in there.values()),
        kept=kept,
        retires=tuple(id for id in submission.derivable if id not in spared),
        quotes=said,
        source=about.source.location if about.source is not None else "",
    )


def _head(document: Document | None) -> DocumentHead | None:
    if document is None:
        return None
    return DocumentHead(**{name: getattr(document, name) for name in DocumentHead.__struct_fields__})


def _since(ctx: CallContext, submission: Submission, about: _Known) -> tuple[Run, ...]:
    """Return what has changed in the document since the submission was written for it."""
    if submission.base == about.now:
        return ()
    before = ctx.local.document_version(submission.document, submission.base) if submission.base else None
    return difference(before.body if before is not None else "", about.body)


def _spared(submission: Submission, there: dict[str, tuple[Store, Entry]]) -> Iterable[LeftAlone]:
    """Give the memories that are not what they were, and those that an acceptance does not retire."""
    for id in submission.memories:
        entry = there[id][1] if id in there else None
        if entry is None:
            yield LeftAlone(id, "was removed for good")
        elif VISIBILITY[entry.state] is Visibility.HISTORY:
            when = f" on {entry.transition.at:%Y-%m-%d}: {entry.transition.cause}" if entry.transition else ""
            yield LeftAlone(id, f"is {entry.state}{when}")
        elif protection := _protected(entry):
            yield LeftAlone(id, protection)


def _protected(entry: Entry) -> str:
    """Return why an entry is not retired for a document; empty if it may be."""
    if entry.damaged:
        return "is damaged"
    if entry.exempt:
        return "is exempt: somebody decided that it must not fade"
    return "is a file of an agent, which stays until it is deleted" if entry.path is not None else ""


def accept(ctx: CallContext, id: str, given: Decision) -> Accepted:
    """Write a submission into its document as a new version, and retire the memories that the person confirms."""
    ctx.require_author("accept what is submitted to the corpus")
    ctx.require_whole("change documents")
    return retry_on_conflict(lambda: _accept(ctx, id, given))


def _accept(ctx: CallContext, id: str, given: Decision) -> Accepted:
    submission = _undecided(ctx, id)
    about = _known(ctx, submission.document)
    body = _accepted_text(ctx, submission, about, given)
    there = _entries(ctx, submission.memories)
    retired, kept = _retiring(submission, there, given.retire)
    document = _document(submission, about, body, ctx)
    tags = _common_tags(ctx, about)
    saved, changed = documents.next_version(
        ctx, document, about.at, passages.of_text(ctx, document, tags), about.source
    )
    done = replace(
        submission,
        state=SubmissionState.ACCEPTED,
        decided_by=str(ctx.actor),
        reason=given.reason,
        edited=given.text is not None,
        accepted=saved.version,
        retired=tuple(retired),
        updated_at=ctx.now,
    )
    save = SaveSubmission(done, submission.version)
    link = f"submission {submission.id} by {submission.origin.principal}"
    cause = f"its content is in document {saved.id}, version {saved.version}"
    ours: list[Operation] = []
    for store in (ctx.local, ctx.account):
        mine = [entry for home, entry in there.values() if home is store]
        operations: list[Operation] = [_archived(ctx, one, cause) for one in mine if one.id in retired]
        if mine:
            operations.append(LinkAction(done.action, link, tuple(one.id for one in mine)))
        if store is ctx.local:
            ours = [one for one in changed if not (isinstance(one, SaveEntry) and one.entry.id in retired)]
            ctx.apply(store, *ours, save, *operations)
        elif operations:
            ctx.apply(store, *operations)
    warning = ""
    if about.source is not None:
        warning = f"the next version of {about.source.location} replaces this text: change it there too"
    head = _head(saved)
    assert head is not None
    return Accepted(replace(done, version=submission.version + 1), head, tuple(kept), warning)


def _undecided(ctx: CallContext, id: str) -> Submission:
    submission = one_of(ctx, id)
    if submission is None:
        raise NotFound(f"no submission {id}", fix="`lukasa review` shows what waits")
    if submission.state not in (SubmissionState.OPEN, SubmissionState.REJECTED):
        fix = f"`lukasa undo {id}` takes it back" if submission.state is SubmissionState.ACCEPTED else "submit it again"
        raise InvalidTransition(f"submission {id} is {submission.state}: {submission.reason}", fix=fix)
    return submission


def _accepted_text(ctx: CallContext, submission: Submission, about: _Known, given: Decision) -> str:
    """Return the text of the new version. DocumentMoved if the person has not seen the document as it is now."""
    moved = _since(ctx, submission, about)
    looked = f"look at the document, then give your text with --onto {about.now}"
    if given.onto is not None and given.onto != about.now:
        raise DocumentMoved(_moved(submission, about), diff=in_one_text(moved), fix=looked)
    if moved and given.onto is None:
        raise DocumentMoved(_moved(submission, about), diff=in_one_text(moved), fix=looked)
    if moved and given.text is None and submission.change.how is How.WHOLE:
        said = f"{_moved(submission, about)}, and the submitted text would replace all of it"
        raise DocumentMoved(said, diff=in_one_text(moved), fix=looked)
    if submission.base and not about.there:
        raise DocumentMoved(_moved(submission, about), diff="", fix="reject it, or submit it as a new document")
    change = submission.change
    if given.text is not None:
        how = How.WHOLE if given.whole or change.how is How.WHOLE else change.how
        text = inputs.text(given.text, "text", documents.DOCUMENT_LIMIT)
        change = Change(how, text, "" if how is How.WHOLE else change.place)
    try:
        return inputs.text(applied(about.body, change), "the changed document", documents.DOCUMENT_LIMIT)
    except InvalidInput as error:
        if not moved:
            raise
        whole = "give the whole text of the document: --whole --text FILE"
        raise DocumentMoved(error.message, diff=in_one_text(moved), fix=whole) from None


def _moved(submission: Submission, about: _Known) -> str:
    if not about.there:
        return f"document {submission.document[:60]!r} was removed since it was submitted"
    return (
        f"document {submission.document[:60]!r} has changed since: it was submitted for version {submission.base}, "
        f"and is at version {about.now}"
    )


def _retiring(
    submission: Submission, there: dict[str, tuple[Store, Entry]], wanted: Sequence[str] | None
) -> tuple[list[str], list[LeftAlone]]:
    """Return the memories to retire, and those that stay although somebody named them."""
    named = submission.derivable if wanted is None else tuple(dict.fromkeys(parse_id(id, "retire") for id in wanted))
    other = next((id for id in named if id not in submission.memories), None)
    if other is not None:
        raise InvalidInput(f"the submission does not rest on entry {other}", fix="retire memories that it names")
    spared = {one.id: one for one in _spared(submission, there)}
    for id in named if wanted is not None else ():
        if id in there and _protected(there[id][1]):
            raise Refused(f"entry {id} {spared[id].reason}", fix="leave it out: the document is changed without it")
    return [id for id in named if id not in spared], [spared[id] for id in named if id in spared]


def _archived(ctx: CallContext, entry: Entry, cause: str) -> SaveEntry:
    moved = entry.moved(State.ARCHIVED, at=ctx.now, cause=cause, actor=str(ctx.actor), version=entry.version + 1)
    return SaveEntry(moved, entry.version, "entry.archived", cause)


def _document(submission: Submission, about: _Known, body: str, ctx: CallContext) -> Document:
    """Return the changed document, with the axes that it has. A new one that an agent submitted has lower ones."""
    if about.document is not None:
        return replace(about.document, body=body)
    by_person = submission.origin.trust is Trust.AUTHOR
    return Document(
        id=about.key,
        title=submission.title or about.key,
        body=body,
        origin="author" if by_person else submission.origin.principal,
        lifecycle="current",
        version=0,
        updated_at=ctx.now,
        collection=submission.collection,
        **({"weight": 1.0, "standing": "canonical"} if by_person else _OF_AGENTS),  # type: ignore[arg-type]
    )


def _common_tags(ctx: CallContext, about: _Known) -> tuple[str, ...]:
    """Return the tags that every passage of a document has: those that somebody gave it."""
    if not about.there:
        return ()
    found = [one.tags for one in ctx.local.passages(about.key)]
    return tuple(tag for tag in found[0] if all(tag in tags for tags in found)) if found else ()


def reject(ctx: CallContext, id: str, reason: str) -> Submission:
    """Turn a submission down. It stays with the reason, and can still be accepted."""
    ctx.require_author("reject what is submitted to the corpus")

    def attempt() -> Submission:
        submission = _undecided(ctx, id)
        done = replace(
            submission,
            state=SubmissionState.REJECTED,
            decided_by=str(ctx.actor),
            reason=reason,
            updated_at=ctx.now,
        )
        ctx.apply(ctx.local, SaveSubmission(done, submission.version))
        return replace(done, version=submission.version + 1)

    return retry_on_conflict(attempt)


# Taking back


class TakenBack(Struct, frozen=True):
    """A submission that waits again, the document as before, and the memories that are in recall again."""

    submission: Submission
    document: DocumentHead
    entries: tuple[Entry, ...]
    kept: tuple[LeftAlone, ...]


def take_back(ctx: CallContext, id: str, cause: str) -> TakenBack:
    """Undo an acceptance: the document has its text of before as a new version, and the memories hold again."""
    ctx.require_author("take back a change of a document")
    ctx.require_whole("change documents")
    return retry_on_conflict(lambda: _take_back(ctx, id, cause))


def _take_back(ctx: CallContext, id: str, cause: str) -> TakenBack:
    submission = one_of(ctx, id)
    if submission is None or submission.state is not SubmissionState.ACCEPTED:
        state = "is not there" if submission is None else f"is {submission.state}"
        raise InvalidTransition(f"submission {id} {state}: there is nothing to take back", fix="choose another one")
    about = _known(ctx, submission.document)
    made = ctx.local.document_version(submission.document, submission.accepted)
    if about.at != submission.accepted and (about.document is None or made is None or made.body != about.body):
        raise DocumentMoved(
            f"document {submission.document[:60]!r} has changed again since: it is at version {about.at}",
            diff="",
            fix="take the later change back first, or write the document as it should be",
        )
    before = ctx.local.document_version(submission.document, submission.accepted - 1)
    document = about.document
    if document is None:
        raise NotFound(f"document {submission.document[:60]!r} is not there", fix="nothing to take back")
    gone = before is None or before.removed
    restored = replace(document, removed=gone, body="" if before is None or gone else before.body)
    split = () if restored.removed else passages.of_text(ctx, restored, _common_tags(ctx, about))
    saved, changed = documents.next_version(ctx, restored, about.at, split, about.source)
    retired = [one for one in _entries(ctx, submission.retired).values() if _left_since(one[0], one[1], submission)]
    back = [reopen(ctx, [(store, entry)], entry, None, f"{cause}: document {saved.id}") for store, entry in retired]
    if submission.wordless:
        state, reason = SubmissionState.REMOVED, submission.reason
    else:
        state, reason = SubmissionState.OPEN, ""
    again = replace(
        submission, state=state, decided_by="", reason=reason, edited=False, accepted=0, retired=(), updated_at=ctx.now
    )
    ids = {entry_id for one in back for entry_id in one.ids}
    ours = [one for one in changed if not (isinstance(one, SaveEntry) and one.entry.id in ids)]
    if state is SubmissionState.OPEN:
        ours += notices.submitted(ctx, replace(again, version=submission.version + 1))
    here = [save for one in back for save in one.of(ctx.local)]
    ctx.apply(ctx.local, *ours, SaveSubmission(again, submission.version), *here)
    elsewhere = [save for one in back for save in one.of(ctx.account)]
    if elsewhere:
        ctx.apply(ctx.account, *elsewhere)
    head = _head(saved)
    assert head is not None
    entries = tuple(save.entry for one in back for _, save in one.saves)
    untouched = {id for id in submission.retired if id not in {entry.id for _, entry in retired}}
    changed_since = tuple(LeftAlone(id, "has changed since") for id in untouched)
    kept = (*changed_since, *(left for one in back for left in one.kept))
    return TakenBack(replace(again, version=submission.version + 1), head, entries, kept)


def _left_since(store: Store, entry: Entry, submission: Submission) -> bool:
    """Say whether the last change of an entry was to be retired for this document."""
    last = store.versions(entry.id)[-1]
    return entry.state is State.ARCHIVED and last.cause.endswith(
        f"document {submission.document}, version {submission.accepted}"
    )
