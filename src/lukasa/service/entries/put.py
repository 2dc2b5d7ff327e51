"""Put: check a caller's texts, compare them with their neighbours, and write them in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.index.matches import Neighbour, NeighbourQuery, NewText
from lukasa.model.citation import Citation
from lukasa.model.conversation import Status
from lukasa.model.entry import DAMAGED, PASSING, Entry, GateVerdict, Scope, SourceLink
from lukasa.model.errors import (
    Damaged,
    EmbedderError,
    InvalidContent,
    InvalidInput,
    InvalidTransition,
    MirrorsCanonical,
    NotFound,
    Refused,
    WrongTier,
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
from lukasa.service.call import ACCOUNT, CallContext, retry_on_conflict
from lukasa.service.citations import citing
from lukasa.service.citations.citing import Cite, Pins
from lukasa.service.corpus.canonical import canonical
from lukasa.service.instrument import verb
from lukasa.storage.operations import Embedding, Enqueue, Operation, Record, SaveCitations, Verdict
from lukasa.storage.port import Store
from lukasa.write.batch import Batch
from lukasa.write.check import CHECK
from lukasa.write.corroborate import corroborated, stated
from lukasa.write.plan import DOUBT_COSINE, RESOLVE, Draft, Plan, Proposal, Setting, ambiguous, plan, run

NEIGHBOURS = 24
BEGINNING = 4  # the first terms of a statement mostly name its subject


class Memo(Struct, frozen=True):
    """One text to remember, with its options. Only `content` is required.

    With a `path` it is a file: kept verbatim, also if it is empty or repeats another entry. With a new `id` of the
    caller's, a repeated call never stores it twice. It retires the entry that `supersedes` names; the one that
    `corrects` names stays, and reads show it under this one. A `category` counts if the words leave doubt. An
    `observed` text was taken from a session: the gate's rules of form apply to it. `cites` names files, symbols, URLs,
    commands, entries and documents, as in `src/auth.py:10-20`, which reads then check. An import says when its text was
    said (`said_at`), so that it counts as of then, and may lower its `trust`.
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
    corrects: str | None = None
    gate: GateVerdict | None = None
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evidence: Sequence[Quote] = ()
    path: str | None = None
    id: str | None = None
    observed: bool = False
    cites: Sequence[Cite | str] = ()
    said_at: datetime | str | None = None
    trust: Trust | None = None


class Written(Struct, frozen=True):
    """The outcome of a write, with the verdicts that led to it.

    `outcome`: stored, held, merged, replaced or discarded for a put; updated, forgotten, restored or accepted for a
    change. `replaces` holds the ids of entries that the write retired, `reopened` of those that it brought back, and
    `beside` of active entries that concern the same thing. `cites` has what a put pinned, also by rules.
    """

    outcome: str
    id: str
    entry: Entry | None
    ledger: tuple[Verdict, ...]
    replaces: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()

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
    pinned = [citing.pins(ctx, memo.cites) for memo in memos]
    proposals = [_propose(ctx, destination, memo, pins) for memo, pins in zip(memos, pinned, strict=True)]
    _check_conversation(ctx, tier)
    _check_open(ctx, destination.scope)
    setting = Setting(ctx.spec, ctx.taxonomy, ctx.now, canonical(ctx, [p.content for p in proposals]))
    drafts = [checked(ctx, store, proposal, setting) for proposal in proposals]
    embeddings = _embed(ctx, drafts)
    cited = [_cited(ctx, draft, pins) for draft, pins in zip(drafts, pinned, strict=True)]

    def attempt() -> list[Written]:
        plans, resolved, doubts = _resolve(ctx, store, drafts, embeddings, setting)
        written = [_written(p, d) for p, d in zip(plans, resolved, strict=True)]
        new = [d for p, d in zip(plans, resolved, strict=True) if p.entry is not None and p.outcome != "merged"]
        doubts += unsorted(ctx, store, new)
        with_it = [*(also(written) if also else ()), *(doubts if store is ctx.local else ())]
        citations = _citations(ctx, store, written, cited) if any(cited) else []
        ctx.apply(store, *(operation for p in plans for operation in p.operations), *citations, *with_it)
        if doubts and store is not ctx.local:
            ctx.apply(ctx.local, *doubts)  # jobs are in the workspace's store: if this fails, the rules' decision holds
        return _telling(written, cited, citations) if citations else written

    done = retry_on_conflict(attempt)
    if any(one.project for citations in cited for one in citations):
        citing.remember(ctx)
    return done


def _cited(ctx: CallContext, draft: Draft, pins: Pins) -> tuple[Citation, ...]:
    """Return what a text cites: what its writer names, and what the rules find in it."""
    if draft.proposal.path is not None:
        return pins.citations
    named = {one.key for one in pins.citations}
    return (*pins.citations, *(one for one in citing.by_rules(ctx, draft.content) if one.key not in named))


def _citations(
    ctx: CallContext, store: Store, written: Sequence[Written], cited: Sequence[Sequence[Citation]]
) -> list[Operation]:
    """Return the changes that give entries their citations. Repeating an entry renews its pins, if it is trusted."""
    new: dict[str, dict[tuple[str, ...], Citation]] = {}
    for one, citations in zip(written, cited, strict=True):
        if one.entry is not None and citations and ctx.origin.trust >= one.entry.trust:
            new.setdefault(one.id, {}).update({c.key: c for c in citations})
    known = [one.id for one in written if one.outcome == "merged" and one.id in new]
    before = store.citations(known) if known else []
    return [
        operation
        for id, citations in new.items()
        for operation in citing.added(id, list(citations.values()), [c for c in before if c.entry == id])
    ]


def _telling(
    written: Sequence[Written], cited: Sequence[Sequence[Citation]], saved: Sequence[Operation]
) -> list[Written]:
    """Return outcomes with what was pinned for each."""
    pinned = {(o.entry, c.key) for o in saved if isinstance(o, SaveCitations) for c in o.citations}
    return [
        replace(one, cites=tuple(c.spelling for c in citations if (one.id, c.key) in pinned))
        for one, citations in zip(written, cited, strict=True)
    ]


def _written(p: Plan, draft: Draft) -> Written:
    id = p.entry.id if p.entry else draft.proposal.id
    return Written(p.outcome, id, p.entry, draft.ledger, p.replaces, beside=p.beside)


class _Destination(NamedTuple):
    """The scope, default lifetimes and store of everything that one call puts into a tier."""

    scope: Scope
    lifetime: Lifetime
    observed: Lifetime
    home: str

    def lasting(self, memo: Memo) -> Lifetime:
        return self.observed if memo.observed else self.lifetime


def _destination(ctx: CallContext, tier: str) -> _Destination:
    """Return where a call puts its entries. An observed one has to earn a long life: nobody decided to keep it."""
    definition, scope = ctx.spec.tier(tier), ctx.scope(tier)
    if definition.persistent:
        return _Destination(scope, Lifetime.LONG_TERM, Lifetime.SHORT_TERM, definition.home)
    in_talk = "conversation" in {key.name for key in definition.anchor}
    passing = Lifetime.CONVERSATION if in_talk else Lifetime.SHORT_TERM
    return _Destination(scope, passing, passing, definition.home)


def _propose(ctx: CallContext, destination: _Destination, memo: Memo, pins: Pins) -> Proposal:
    sources = [ctx.entry(id)[1] for id in inputs.several(memo.derived_from, "derived_from")]
    links = citing.documents(inputs.several(memo.links, "links"), pins)
    if links and destination.home == "account":
        raise InvalidInput(
            "an account entry cannot link to a workspace's documents", fix="put the entry in a tier of the workspace"
        )
    owner = inputs.one_line(memo.owner, "owner")
    alone = ctx.spec.readers(destination.scope.tier).agents == "owner"  # there every entry is its agent's
    if alone and owner == SHARED and ctx.agent is not None and not ctx.overseeing:
        owner = ctx.agent
    if not (ctx.is_author or ctx.overseeing) and owner not in ctx.owners:
        raise InvalidInput(
            f"{ctx.origin.principal!r} cannot write for {owner!r}",
            fix="leave the owner out, or use the agent's own name",
        )
    content = checked_content(ctx, memo.content, memo.path)
    vouched = [entry.trust for entry in sources] + ([memo.trust] if memo.trust is not None else [])
    kind = inputs.choice(memo.kind, Kind, "kind") if memo.kind is not None else None
    return Proposal(
        id=new_id() if memo.id is None else parse_id(memo.id),
        scope=destination.scope,
        content=content,
        curator=_curator(ctx, memo),
        source=inputs.one_line(memo.source or _speaker(memo, content, kind) or _writer(ctx), "source"),
        origin=ctx.origin.capped(*vouched) if vouched else ctx.origin,
        owner=owner,
        importance=inputs.importance(memo.importance),
        kind=kind,
        lifetime=inputs.choice(memo.lifetime, Lifetime, "lifetime")
        if memo.lifetime is not None
        else destination.lasting(memo),
        tags=inputs.tags(memo.tags),
        conversation=ctx.keys.get("conversation"),
        links=tuple(_link(ctx, link) for link in links),
        derived_from=tuple(entry.id for entry in sources),
        derived_trust=tuple(entry.trust for entry in sources),
        valid_at=inputs.moment(memo.valid_at, "valid_at") if memo.valid_at is not None else None,
        supersedes=_named(ctx, memo.supersedes, "supersedes"),
        corrects=_named(ctx, memo.corrects, "corrects"),
        gate=memo.gate,
        category=memo.category,
        metadata=_metadata(memo),
        evidence=tuple(memo.evidence),
        path=inputs.path(memo.path) if memo.path is not None else None,
        observed=memo.observed,
        said_at=_said_at(ctx, memo),
    )


def _said_at(ctx: CallContext, memo: Memo) -> datetime | None:
    """Return when the text of an import was said. Nobody else may date a statement back."""
    if memo.said_at is None:
        return None
    if memo.curator is None or inputs.choice(memo.curator, Curator, "curator") is not Curator.IMPORT:
        raise InvalidInput("only an import says when its text was said", fix="leave said_at out, or use valid_at")
    return min(inputs.moment(memo.said_at, "said_at"), ctx.now)


def _writer(ctx: CallContext) -> str:
    """Return the source of a text whose writer names none. Text of unknown authorship is not the user's."""
    return ctx.agent or ("user" if ctx.origin.trust > Trust.UNTRUSTED else ctx.origin.principal)


def _metadata(memo: Memo) -> dict[str, Any]:
    """Return the metadata of a memo. One that is asked for only until the end of a conversation says so."""
    given = inputs.metadata(memo.metadata)
    passing = memo.lifetime is not None and inputs.choice(memo.lifetime, Lifetime, "lifetime") is Lifetime.CONVERSATION
    return {**given, PASSING: True} if passing else given


def _named(ctx: CallContext, id: str | None, what: str) -> str | None:
    """Return the id of an entry that a memo names, if it names one that this context may see."""
    return ctx.entry(ctx.entry_id(id, what))[1].id if id is not None else None


def _speaker(memo: Memo, content: str, kind: Kind | None) -> str | None:
    """Return the speaker that a line of dialogue names, if the caller names no source."""
    if memo.path is not None or (name := speaker(content)) is None or not inputs.is_one_line(name):
        return None
    return name if kind is Kind.EPISODIC or speaks(content) else None


def checked_content(ctx: CallContext, value: object, path: str | None) -> str:
    """Return the text of an entry; only a file may be blank."""
    if value is DAMAGED:
        raise Damaged("the text to store")
    rules = ctx.spec.reference_only
    if path is None:
        return inputs.text(value, "content", rules.max_chars)
    return inputs.verbatim(value, "content", rules.max_file_chars)


def _curator(ctx: CallContext, memo: Memo) -> Curator:
    """Return the curator of a memo: the acting one. An author, and background work for one, may mark an import."""
    if memo.curator is None:
        return ctx.curator
    asked = inputs.choice(memo.curator, Curator, "curator")
    owners = ctx.curator is Curator.AUTHOR or ctx.overseeing
    if asked is not ctx.curator and not (asked is Curator.IMPORT and owners):
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


def _check_open(ctx: CallContext, scope: Scope) -> None:
    """Refuse a write into a scope that has ended, or that lies in one."""
    values = {"account": ACCOUNT, "workspace": ctx.info.id, **dict(scope.anchor)}
    inside = [
        Scope(tier.name, tuple((key.name, values.get(key.name)) for key in tier.anchor))
        for tier in ctx.spec.tiers
        if tier.boundary.type == "lifecycle"
        and not any(key.name == "conversation" for key in tier.anchor)
        and all(values.get(key.name) is not None for key in tier.anchor if key.required)
    ]
    for closed in ctx.local.closed(inside) if inside else ():
        raise InvalidTransition(
            f"a scope of tier {closed.scope.tier!r} has ended and takes no more entries",
            fix="use another value for its keys",
        )


def checked(ctx: CallContext, store: Store, proposal: Proposal, setting: Setting) -> Draft:
    """Check a proposal: sanitise, guard, gate, categorise, admit. Record a refusal as an event."""
    trust = min((proposal.origin.trust, *proposal.derived_trust))
    typology = ctx.spec.tier(proposal.scope.tier).typology
    kind = proposal.kind or (Kind.SEMANTIC if Kind.SEMANTIC in typology else typology[0])
    start = Draft(proposal, proposal.content, kind, trust, proposal.gate or _OPEN)
    try:
        draft = run(CHECK, start, setting)
    except MirrorsCanonical as refusal:
        detail = {**proposal.place, "cause": "repeats a canonical body", "mirrors": refusal.mirrors}
        ctx.refuse(store, refusal, Record(EventDraft("entry.refused", proposal.id, detail)))
        raise
    except WrongTier as refusal:
        detail = {"tier": proposal.scope.tier, "cause": "the tier does not admit it", "instead": refusal.tier}
        ctx.refuse(store, refusal, Record(EventDraft("entry.refused", proposal.id, detail)))
        raise
    if draft.resolved and not proposal.observed and not draft.content.strip() and proposal.content.strip():
        emptied = InvalidContent(
            f"the spec lets no part of this text into tier {proposal.scope.tier!r}",
            fix="put it into another tier, or leave out the part that is marked as private",
        )
        detail = {**proposal.place, "cause": draft.gate.reason}
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
        if planned.outcome == "merged":
            planned, draft = _corroborated(store, planned, draft, plans, with_near, actor)
        batch.add(position, planned)
        plans.append(planned)
        resolved.append(draft)
    return plans, resolved, doubts


def _corroborated(
    store: Store, planned: Plan, draft: Draft, before: Sequence[Plan], setting: Setting, actor: str
) -> tuple[Plan, Draft]:
    """Return a plan that confirms an entry, with what enough independent observations make of the entry."""
    id = planned.entry.id if planned.entry is not None else ""
    known = [*store.confirmations([id]), *(one for earlier in before for one in stated(earlier))]
    grown, verdict = corroborated(planned, known, setting, actor)
    return grown, draft if verdict is None else draft.noting(verdict.step, verdict.outcome, verdict.reason)


def _doubt(draft: Draft, setting: Setting) -> list[Enqueue]:
    """W4: return a job that asks a model. It is committed with the write, which does not wait for it."""
    others = ambiguous(draft, setting)
    if not others:
        return []
    new = draft.proposal
    payload = {"entry": new.id, "version": 1, "tier": new.scope.tier, "against": [[e.id, e.version] for e in others]}
    return [Enqueue(JobDraft("resolve", f"resolve:{new.id}:1", payload))]


SHARED_WINDOW = timedelta(minutes=1)  # writes within it share a question about categories: a burst costs one


def unsorted(ctx: CallContext, store: Store, drafts: Iterable[Draft]) -> list[Enqueue]:
    """W7: return a job that asks a model for the categories that the words leave open, if one is set."""
    if ctx.chat is None or not any(d.category is None and not d.resolved and d.proposal.path is None for d in drafts):
        return []
    start = ctx.now.replace(second=0, microsecond=0)
    home = "account" if store is ctx.account else "workspace"
    payload = {"home": home, "after": store.head()[0]}
    key = f"categorise:{home}:{start:%Y-%m-%dT%H:%MZ}"
    return [Enqueue(JobDraft("categorise", key, payload, run_after=start + SHARED_WINDOW))]


def neighbours(store: Store, draft: Draft, embedding: Embedding | None) -> list[Neighbour]:
    """Return entries of the same scope and owner that may concern the same thing as a new one; none for a file."""
    return _around(store, [draft], [embedding], NEAR)[0]


def _around(
    store: Store, drafts: Sequence[Draft], embeddings: Sequence[Embedding | None], floor: float
) -> list[list[Neighbour]]:
    """Return the neighbours of each draft, fetched at once, and the entries that drafts replace or correct."""
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
    named = {id for draft in drafts for id in draft.proposal.named}
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
        for id in () if draft.resolved else p.named:
            if id not in entries or entries[id].scope != p.scope:
                raise NotFound(
                    f"no entry {id} in tier {p.scope.tier!r} for this text to replace or correct",
                    fix="put the text into the tier of that entry; `lukasa list` shows the ids of active entries",
                )
            if all(n.entry.id != id for n in near):
                near.append(Neighbour(entries[id], None))


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
