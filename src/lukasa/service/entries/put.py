"""Put: check a caller's texts, compare them with their neighbours, and write them in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct, field

from lukasa.curated.document import NAME
from lukasa.index.matches import Neighbour, NeighbourQuery, NewText
from lukasa.model.conversation import Status
from lukasa.model.entry import Entry, GateVerdict, Scope, SourceLink
from lukasa.model.errors import (
    EmbedderError,
    InvalidContent,
    InvalidInput,
    InvalidTransition,
    MirrorsCanonical,
    NotFound,
    Refused,
)
from lukasa.model.events import EventDraft
from lukasa.model.ids import new_id, parse_id
from lukasa.model.job import JobDraft
from lukasa.model.selection import Selection
from lukasa.model.statements import NEAR
from lukasa.model.text import speaker, speaks, terms
from lukasa.model.transcript import Quote
from lukasa.model.values import SHARED, Curator, Gate, Kind, Lifetime, Trust, Visibility
from lukasa.ports import EmbeddingModel
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.instrument import verb
from lukasa.storage.operations import Embedding, Enqueue, Operation, Record, Verdict
from lukasa.storage.port import Store
from lukasa.write.batch import Batch
from lukasa.write.check import CHECK
from lukasa.write.plan import DOUBT_COSINE, RESOLVE, Canonical, Draft, Plan, Proposal, Setting, ambiguous, plan, run

NEIGHBOURS = 24
BEGINNING = 4  # the first terms of a statement mostly name its subject
NAMED_ENTRIES = "named entries"  # the name in a spec's non-mirror list; other names there are collections of documents


class Memo(Struct, frozen=True):
    """One text to remember, with its options. Only `content` is required.

    With a `path` it is a file: kept verbatim, also if it is empty or repeats another entry. With a new `id` of the
    caller's, a repeated call never stores it twice. A `category` counts if the words leave doubt. An `observed` text
    was taken from a session: the gate's rules of form apply to it.
    """

    content: str
    kind: Kind | str | None = None
    importance: float = 0.5
    lifetime: Lifetime | str | None = None
    tags: Sequence[str] = ()
    owner: str = SHARED
    source: str = ""
    curator: Curator | str | None = None
    links: Sequence[SourceLink | str] = ()
    derived_from: Sequence[str] = ()
    valid_at: datetime | str | None = None
    supersedes: str | None = None
    gate: GateVerdict | None = None
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evidence: Sequence[Quote] = ()
    path: str | None = None
    id: str | None = None
    observed: bool = False


class Written(Struct, frozen=True):
    """The outcome of a write, with the verdicts that led to it.

    `outcome`: stored, held, merged, replaced or discarded for a put; updated, forgotten, restored or accepted for a
    change. `replaces` holds the ids of entries that the write retired, `reopened` of those that it brought back, and
    `beside` of active entries that concern the same thing.
    """

    outcome: str
    id: str
    entry: Entry | None
    ledger: tuple[Verdict, ...]
    replaces: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The reason of the last verdict that did not just let the write pass. Empty if no step ran."""
        passing = {"pass", "unchanged", "new", "add", "none", "allow", "ambiguous"}
        deciding = [v for v in self.ledger if v.outcome not in passing and v.step != "categorise"]
        return (deciding or list(self.ledger))[-1].reason if self.ledger else ""


_OPEN = GateVerdict(Gate.ALLOW, 1.0, "")
Also = Callable[[list[Written]], Sequence[Operation]]


@verb("memory", "put")
def put_many(ctx: CallContext, tier: str, memos: Sequence[Memo], *, also: Also | None = None) -> list[Written]:
    """Write a batch into one tier, in one transaction; each memo is compared with those before it.

    `also` gets the outcomes, and returns operations to commit with them: a journal line, a job.
    """
    if not memos:
        return []
    store = ctx.store(tier)
    destination = _destination(ctx, tier)
    proposals = [_propose(ctx, destination, memo) for memo in memos]
    _check_conversation(ctx, tier)
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx))
    drafts = [checked(ctx, store, proposal, setting) for proposal in proposals]
    embeddings = _embed(ctx, drafts)

    def attempt() -> list[Written]:
        plans, resolved, doubts = _resolve(ctx, store, drafts, embeddings, setting)
        written = [_written(p, d) for p, d in zip(plans, resolved, strict=True)]
        with_it = [*(also(written) if also else ()), *(doubts if store is ctx.local else ())]
        ctx.apply(store, *(operation for p in plans for operation in p.operations), *with_it)
        if doubts and store is not ctx.local:
            ctx.apply(ctx.local, *doubts)  # jobs are in the workspace's store: if this fails, the rules' decision holds
        return written

    return retry_on_conflict(attempt)


def _written(p: Plan, draft: Draft) -> Written:
    id = p.entry.id if p.entry else draft.proposal.id
    return Written(p.outcome, id, p.entry, draft.ledger, p.replaces, beside=p.beside)


class _Destination(NamedTuple):
    """The scope, default lifetime and store of everything that one call puts into a tier."""

    scope: Scope
    lifetime: Lifetime
    home: str


def _destination(ctx: CallContext, tier: str) -> _Destination:
    definition = ctx.spec.tier(tier)
    lasting = definition.persistent or ctx.keys.get("conversation") is None
    if definition.persistent is False and "conversation" in {key.name for key in definition.anchor}:
        lasting = False
    return _Destination(ctx.scope(tier), Lifetime.LONG_TERM if lasting else Lifetime.CONVERSATION, definition.home)


def _propose(ctx: CallContext, destination: _Destination, memo: Memo) -> Proposal:
    sources = [ctx.entry(id)[1] for id in inputs.several(memo.derived_from, "derived_from")]
    links = inputs.several(memo.links, "links")
    if links and destination.home == "account":
        raise InvalidInput(
            "an account entry cannot link to a workspace's documents", fix="put the entry in a tier of the workspace"
        )
    owner = inputs.label(memo.owner, "owner")
    if not ctx.is_author and owner not in ctx.owners:
        raise InvalidInput(
            f"{ctx.origin.principal!r} cannot write for {owner!r}",
            fix="leave the owner out, or use the agent's own name",
        )
    content = checked_content(ctx, memo.content, memo.path)
    kind = inputs.choice(memo.kind, Kind, "kind") if memo.kind is not None else None
    return Proposal(
        id=new_id() if memo.id is None else parse_id(memo.id),
        scope=destination.scope,
        content=content,
        curator=_curator(ctx, memo),
        source=inputs.label(memo.source or _speaker(memo, content, kind) or _writer(ctx), "source"),
        origin=ctx.origin.capped(*(entry.trust for entry in sources)) if sources else ctx.origin,
        owner=owner,
        importance=inputs.importance(memo.importance),
        kind=kind,
        lifetime=inputs.choice(memo.lifetime, Lifetime, "lifetime")
        if memo.lifetime is not None
        else destination.lifetime,
        tags=inputs.tags(memo.tags),
        conversation=ctx.keys.get("conversation"),
        links=tuple(_link(ctx, link) for link in links),
        derived_from=tuple(entry.id for entry in sources),
        derived_trust=tuple(entry.trust for entry in sources),
        valid_at=inputs.moment(memo.valid_at, "valid_at") if memo.valid_at is not None else None,
        supersedes=ctx.entry(parse_id(memo.supersedes, "supersedes"))[1].id if memo.supersedes is not None else None,
        gate=memo.gate,
        category=memo.category,
        metadata=inputs.metadata(memo.metadata),
        evidence=tuple(memo.evidence),
        path=inputs.path(memo.path) if memo.path is not None else None,
        observed=memo.observed,
    )


def _writer(ctx: CallContext) -> str:
    """Return the source of a text whose writer names none. Text of unknown authorship is not the user's."""
    return ctx.agent or ("user" if ctx.origin.trust > Trust.UNTRUSTED else ctx.origin.principal)


def _speaker(memo: Memo, content: str, kind: Kind | None) -> str | None:
    """Return the speaker that a line of dialogue names, if the caller names no source."""
    if memo.path is not None or (name := speaker(content)) is None:
        return None
    return name if kind is Kind.EPISODIC or speaks(content) else None


def checked_content(ctx: CallContext, value: object, path: str | None) -> str:
    """Return the text of an entry; only a file may be blank."""
    check = inputs.text if path is None else inputs.verbatim
    return check(value, "content", ctx.spec.reference_only.max_chars)


def _curator(ctx: CallContext, memo: Memo) -> Curator:
    """Return the curator of a memo: the acting one; an author may also mark a memo as an import."""
    if memo.curator is None:
        return ctx.curator
    asked = inputs.choice(memo.curator, Curator, "curator")
    if asked is not ctx.curator and not (asked is Curator.IMPORT and ctx.curator is Curator.AUTHOR):
        raise Refused(f"{ctx.origin.principal!r} writes as {ctx.curator}, not as {asked}", fix="leave curator out")
    return asked


def _link(ctx: CallContext, link: SourceLink | str) -> SourceLink:
    """Return a link that pins the version which was read; a bare id pins the present version."""
    source = inputs.label(link if isinstance(link, str) else link.source, "document id")
    document = ctx.local.documents([source]).get(source)
    if document is None or document.removed:
        raise NotFound(f"no document {source[:60]!r} to link to", fix="add it first, as with `lukasa document add`")
    return SourceLink(source, document.version) if isinstance(link, str) else link


def _check_conversation(ctx: CallContext, tier: str) -> None:
    if "conversation" not in {key.name for key in ctx.spec.tier(tier).anchor}:
        return
    conversation = ctx.local.conversation(ctx.keys.get("conversation", ""))
    if conversation is not None and conversation.status is not Status.ACTIVE:
        raise InvalidTransition(
            f"conversation {conversation.ref_code} is {conversation.status} and takes no more entries",
            fix="start a new one, as with `lukasa conversation start`",
        )


def canonical(ctx: CallContext) -> tuple[Canonical, ...]:
    """Return the canonical texts that the spec forbids entries to repeat."""
    wanted = set(ctx.spec.reference_only.non_mirror)
    found: list[Canonical] = []
    if NAMED_ENTRIES in wanted:
        for store in (ctx.local, ctx.account):
            # The curated page is made from entries: they cannot be copies of it.
            found.extend(Canonical(n.name, NAMED_ENTRIES, n.body) for n in store.named() if n.name != NAME)
    documents = ctx.local.documents().values() if wanted - {NAMED_ENTRIES} else ()
    found.extend(Canonical(d.id, d.collection, d.body) for d in documents if d.collection in wanted and not d.removed)
    return tuple(found)


def checked(ctx: CallContext, store: Store, proposal: Proposal, setting: Setting) -> Draft:
    """Check a proposal: sanitise, guard, gate, categorise. Record a refusal as an event."""
    trust = min((proposal.origin.trust, *proposal.derived_trust))
    typology = ctx.spec.tier(proposal.scope.tier).typology
    kind = proposal.kind or (Kind.SEMANTIC if Kind.SEMANTIC in typology else typology[0])
    start = Draft(proposal, proposal.content, kind, trust, proposal.gate or _OPEN)
    try:
        draft = run(CHECK, start, setting)
    except MirrorsCanonical as refusal:
        detail = {"tier": proposal.scope.tier, "cause": "repeats a canonical body", "mirrors": refusal.mirrors}
        ctx.refuse(store, refusal, Record(EventDraft("entry.refused", proposal.id, detail)))
        raise
    if draft.resolved and not proposal.observed and not draft.content.strip() and proposal.content.strip():
        emptied = InvalidContent(
            f"the spec lets no part of this text into tier {proposal.scope.tier!r}",
            fix="put it into another tier, or leave out the part that is marked as private",
        )
        detail = {"tier": proposal.scope.tier, "cause": draft.gate.reason}
        ctx.refuse(store, emptied, Record(EventDraft("entry.refused", proposal.id, detail)))
        raise emptied
    return draft


def _embed(ctx: CallContext, drafts: Sequence[Draft]) -> list[Embedding | None]:
    """Compute vectors for the texts to store. If the embedder fails, the text is stored and backfilled later."""
    wanted = [i for i, draft in enumerate(drafts) if not draft.resolved]
    out: list[Embedding | None] = [None] * len(drafts)
    if ctx.embedder is None or not wanted:
        return out
    try:
        vectors = ctx.embedder.embed_memories([drafts[i].content for i in wanted])
    except EmbedderError:
        return out
    for i, vector in zip(wanted, vectors, strict=True):
        out[i] = Embedding(ctx.embedder.model, vector)
    return out


def _resolve(
    ctx: CallContext, store: Store, drafts: Sequence[Draft], embeddings: Sequence[Embedding | None], setting: Setting
) -> tuple[list[Plan], list[Draft], list[Enqueue]]:
    """Compare each draft with its neighbours in the store and with the drafts before it, and plan its operations.

    Also return the jobs for a language model, if one is set and the rules leave doubt.
    """
    secret, actor = store.secret(), str(ctx.actor)
    doubted = ctx.chat is not None
    floor = DOUBT_COSINE if doubted else NEAR
    around = _around(store, drafts, embeddings, floor)
    batch = Batch(drafts, embeddings, floor, whole=doubted)
    plans: list[Plan] = []
    resolved: list[Draft] = []
    doubts: list[Enqueue] = []
    for position, (draft, embedding, near) in enumerate(zip(drafts, embeddings, around, strict=True)):
        if not draft.resolved:
            wide = near if ctx.chat is None else _wider(store, draft, near)
            around_it = batch.view(position, wide)
            with_near = setting.among(around_it) if around_it else setting
            draft = run(RESOLVE, draft, with_near)
            if ctx.chat is not None:
                doubts.extend(_doubt(draft, with_near))
        planned = plan(draft, setting, actor=actor, embedding=embedding, secret=secret)
        batch.add(position, planned)
        plans.append(planned)
        resolved.append(draft)
    return plans, resolved, doubts


def _doubt(draft: Draft, setting: Setting) -> list[Enqueue]:
    """W4: return a job that asks a model. It is committed with the write, which does not wait for it."""
    others = ambiguous(draft, setting)
    if not others:
        return []
    new = draft.proposal
    payload = {"entry": new.id, "version": 1, "tier": new.scope.tier, "against": [[e.id, e.version] for e in others]}
    return [Enqueue(JobDraft("resolve", f"resolve:{new.id}:1", payload))]


def neighbours(store: Store, draft: Draft, embedding: Embedding | None) -> list[Neighbour]:
    """Return entries of the same scope and owner that may concern the same thing as a new one; none for a file."""
    return _around(store, [draft], [embedding], NEAR)[0]


def _around(
    store: Store, drafts: Sequence[Draft], embeddings: Sequence[Embedding | None], floor: float
) -> list[list[Neighbour]]:
    """Return the neighbours of each draft, fetched at once, and the entries that drafts say they replace."""
    found: list[list[Neighbour]] = [[] for _ in drafts]
    for (scope, owner, model), positions in _by_scope(drafts, embeddings).items():
        query = NeighbourQuery(scope, owner, model, floor, NEIGHBOURS)
        vectors = [None if (e := embeddings[position]) is None else e.vector for position in positions]
        texts = [
            NewText(drafts[position].content, vector, drafts[position].proposal.speaker)
            for position, vector in zip(positions, vectors, strict=True)
        ]
        for position, near in zip(positions, store.neighbours(query, texts), strict=True):
            found[position] = near
    named = [p.supersedes for draft in drafts if (p := draft.proposal).supersedes is not None]
    if named:
        _add_named(drafts, found, store.entries(named))
    return found


def _by_scope(
    drafts: Sequence[Draft], embeddings: Sequence[Embedding | None]
) -> dict[tuple[Scope, str, EmbeddingModel | None], list[int]]:
    groups: dict[tuple[Scope, str, EmbeddingModel | None], list[int]] = {}
    for position, (draft, embedding) in enumerate(zip(drafts, embeddings, strict=True)):
        if not draft.resolved and draft.proposal.path is None:
            key = (draft.proposal.scope, draft.proposal.owner, embedding.model if embedding is not None else None)
            groups.setdefault(key, []).append(position)
    return groups


def _add_named(drafts: Sequence[Draft], found: Sequence[list[Neighbour]], entries: Mapping[str, Entry]) -> None:
    for draft, near in zip(drafts, found, strict=True):
        p = draft.proposal
        if p.supersedes is None or draft.resolved:
            continue
        if p.supersedes not in entries:
            raise NotFound(
                f"no entry {p.supersedes} to supersede in this tier",
                fix="`lukasa list` shows the ids of active entries",
            )
        entry = entries[p.supersedes]
        if entry.scope == p.scope and all(n.entry.id != entry.id for n in near):
            near.append(Neighbour(entry, None))


def _wider(store: Store, draft: Draft, near: Sequence[Neighbour]) -> list[Neighbour]:
    """Add entries that share many words: a model may see a contradiction where the rules cannot."""
    p = draft.proposal
    if p.path is not None:
        return list(near)
    selection = Selection((p.scope,), frozenset({Visibility.OPEN}), (p.owner,))
    asked = tuple(dict.fromkeys(terms(draft.content)))[:16]
    # A statement with another value shares the beginning, and perhaps little of the rest.
    matches = [store.keyword(selection, sought, NEIGHBOURS) for sought in dict.fromkeys((asked, asked[:BEGINNING]))]
    known = {n.entry.id for n in near}
    more = store.entries(dict.fromkeys(id for match in matches for id in match.ids if id not in known))
    return [*near, *(Neighbour(entry, None) for entry in more.values())]
