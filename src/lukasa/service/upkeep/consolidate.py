"""Consolidation: replace several entries by one, and retire the originals.

    score → promote → prune → by the spec's style: compound, merge or supersession → cap

Every group is one commit with its journal line, so a run can stop anywhere and leaves a tier coherent. A language
model, if one is set, is called between commits; its answer holds for the versions that it saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lukasa.model.conversation import SUMMARY_TAG
from lukasa.model.entry import Entry, Rivalry, Scope
from lukasa.model.errors import ChatMalformed, InvalidInput
from lukasa.model.ids import derived_id
from lukasa.model.selection import Filters, Selection
from lukasa.model.values import Kind, Relation, State, Trust
from lukasa.observe.support import denies, missing_words
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import Task, ask
from lukasa.service.jobs.triggers import BOUNDARY
from lukasa.service.upkeep.promote import crossed, embedded, promote, proposed, release, scope_above
from lukasa.service.upkeep.run import (
    COMPLETED,
    Target,
    Tell,
    Upkeep,
    active,
    open_conversations,
    silent,
    targets,
    vectors,
    weighed,
    without,
)
from lukasa.spec.prompts import prompt
from lukasa.spec.types import ByRule, Consolidation, LifecyclePolicy
from lukasa.storage.operations import SaveEntry, SaveRivalry, Verdict
from lukasa.upkeep.digest import MOST_CHARS, SOURCE, Text, answer, digest, episodes, notes_of, question
from lukasa.upkeep.promotion import capped, may_go, pruned
from lukasa.upkeep.weighed import Copies, Weighed, copies, outdated, recency, related, support
from lukasa.write.plan import MOST_EVIDENCE, Setting, plan, retire

if TYPE_CHECKING:
    from lukasa.ports import Vector

OPERATOR = "operator"
MOST_GROUPS = 50  # for which one run asks a model, by scope and kind; the next run takes the rest


def consolidate(
    ctx: CallContext, task: Task | None, *, tell: Tell = silent, tiers: list[str] | None = None
) -> dict[str, Any]:
    """O5, O6, W8: consolidate tiers. Without a task, change nothing and count what rules would change."""
    if task is not None and task.journaled(COMPLETED):
        return dict(task.output(COMPLETED))
    payload = {"trigger": OPERATOR, "tiers": tiers} if task is None else task.job.payload
    up = Upkeep(ctx, task, tell)
    for id in payload.get("digests") or ():
        _rewrite_digest(up, str(id))
    anchor = payload.get("anchor")  # of the one scope that ended
    for target in targets(ctx, payload.get("tiers")):
        if anchor is None or [list(pair) for pair in target.scope.anchor] == anchor:
            _Scope(up, target, payload).run()
    return up.finish()


class _Scope:
    """The consolidation of one scope."""

    def __init__(self, up: Upkeep, target: Target, payload: Mapping[str, Any]) -> None:
        self.up = up
        self.ctx = up.ctx
        self.target = target
        self.trigger = str(payload.get("trigger") or OPERATOR)
        self.conversation: str | None = payload.get("conversation")
        self.near: dict[str, Vector] = {}
        self.summarised: bool | None = None  # a scope has one conversation at most

    def run(self) -> None:
        wanted = [kind for kind in Kind if self._rule(kind).style != "none" and self._fires(self._rule(kind))]
        if not wanted:
            return
        if self.conversation is None:
            release(self.up, self.target, wanted)
        found = weighed(self.ctx, self.target, conversation=self.conversation)
        if not found:
            return
        self.up.say(f"{self.target.tier}: {len(found):,} entries")
        self.near = vectors(self.ctx, self.target, found)
        left = [w for w in found if w.entry.kind not in wanted]
        for kind in wanted:
            left += self._kind(kind, [w for w in found if w.entry.kind is kind])
        caps = [self._rule(kind).cap for kind in wanted if self._rule(kind).cap]
        if caps and self.conversation is None:
            mine = [w for w in left if w.entry.kind in wanted]
            going = [w for w in mine if may_go(w.entry, self._policy(w.entry.kind))]
            self.up.move(self.target.store, "pruned", capped(mine, min(caps), going))

    def _rule(self, kind: Kind) -> Consolidation:
        return self.ctx.spec.behaviour(self.target.tier, kind).consolidation

    def _policy(self, kind: Kind) -> LifecyclePolicy:
        return self.ctx.spec.behaviour(self.target.tier, kind).lifecycle.policy

    def _fires(self, rule: Consolidation) -> bool:
        trigger = "session_close" if self.trigger == BOUNDARY else self.trigger
        return trigger == OPERATOR or trigger in rule.triggers

    def _kind(self, kind: Kind, found: list[Weighed]) -> list[Weighed]:
        rule, store = self._rule(kind), self.target.store
        left = promote(self.up, self.target, found, self.near, kind)
        # An entry promoted just now is in use: this run neither prunes nor merges it.
        moves = pruned(left, rule, self._policy(kind))
        left = without(left, self.up.move(store, "pruned", moves)) if moves else left
        stale = [w for w in left if w.entry.state is State.STALE]
        fresh = active(left)
        match rule.style:
            case "compound":
                fresh = self._compound(fresh)
            case "merge":
                fresh = self._merge(fresh, rule)
            case "supersession":
                fresh = merge(self.up, self.target, settle(self.up, self.target, fresh, self.near), self.near, rule)
        return fresh + stale

    # Styles

    def _merge(self, found: list[Weighed], rule: Consolidation) -> list[Weighed]:
        left = merge(self.up, self.target, found, self.near, rule)
        if not self.up.asks:
            return left
        groups = [group for group in related(left, self.near, support) if len(group) > 1]
        return without(left, self._rewrite(groups, "merge"))

    def _compound(self, found: list[Weighed]) -> list[Weighed]:
        transient = not self.ctx.spec.tier(self.target.tier).persistent
        if self.trigger == "session_close" or (self.trigger == BOUNDARY and transient):
            return found  # the end itself has carried on what leaves the scope
        notes = [w for w in found if SUMMARY_TAG not in w.entry.tags and not self._summarised(w.entry)]
        ripe_only = not transient and self.trigger != OPERATOR
        groups = episodes(notes, open_conversations(self.ctx), self.ctx.now.date(), ripe_only=ripe_only)
        return without(found, self._rewrite(groups, "compound"))

    def _summarised(self, entry: Entry) -> bool:
        """Say whether the end of the conversation has left a summary: then nothing more needs to be carried on."""
        conversation = entry.scope.value("conversation")
        if conversation is None:
            return False
        if self.summarised is None:
            wanted = Filters(tags=frozenset({SUMMARY_TAG}), conversations=frozenset({conversation}))
            scopes = tuple(count.scope for count in self.ctx.local.census())
            found = self.ctx.local.find(Selection(scopes, owners=None, filters=wanted), limit=1)
            self.summarised = bool(found)
        return self.summarised

    # One entry out of several

    def _rewrite(self, groups: Sequence[Sequence[Weighed]], style: str) -> set[str]:
        """Write each group as one entry; return the ids that were replaced."""
        up, gone = self.up, set[str]()
        chosen = groups[:MOST_GROUPS]
        for number, group in enumerate(chosen, 1):
            name = f"{style}:{derived_id(*(w.id for w in group))}"
            if up.task is not None and up.task.journaled(name):
                continue
            text = self._text(group, name)
            if text is not None:
                gone |= self._replace([group[target] for target in text.sources], text.content, name)
            elif up.task is not None and not up.task.journaled(name):
                up.task.commit(name, {"counts": {}})  # the model made no entry of them
            up.say(f"{self.target.tier}: {style} {number} of {len(chosen)}")
        return gone

    def _text(self, group: Sequence[Weighed], name: str) -> Text | None:
        task = self.up.task
        if task is None or task.chat is None:
            return digest(group, self._label(group[0].entry))
        most = min(MOST_CHARS, self.ctx.spec.reference_only.max_chars)
        versions = ",".join(f"{w.id}@{w.entry.version}" for w in group)
        step = f"ask:{derived_id(versions)}"
        asked = prompt("consolidate", self.ctx.prompts, most=str(most))
        try:
            return ask(task, step, asked, question(group), lambda data: _read(data, group, most))
        except ChatMalformed as error:
            self.up.drop("consolidated", [w.id for w in group], error.message, step=name)
            return None

    def _label(self, entry: Entry) -> str:
        key = entry.conversation or entry.scope.value("conversation")
        conversation = self.ctx.local.conversation(key) if key else None
        return f"conversation {conversation.ref_code}" if conversation else ""

    def _replace(self, group: Sequence[Weighed], content: str, name: str) -> set[str]:
        """Write the new entry and forget its sources in one commit; do nothing if a source has changed."""
        up, sources = self.up, [w.entry for w in group]
        ids = [e.id for e in sources]
        if self._changed(sources):
            up.drop("consolidated", ids, "an entry has changed since this was decided", step=name)
            return set()
        save = self._entry(sources, content)
        if save is None:
            return set()
        cause = f"consolidated into {save.entry.id}"
        gone = [self._forgotten(e, save.entry.id, cause) for e in sources]
        done = up.commit(self.target.store, "consolidated", [*gone, save], main=save.entry.id, step=name)
        return set(ids) if done else set()

    def _changed(self, sources: Sequence[Entry]) -> bool:
        now = self.target.store.entries([e.id for e in sources])
        return any(e.id not in now or now[e.id].version != e.version for e in sources)

    def _entry(self, sources: Sequence[Entry], content: str) -> SaveEntry | None:
        ctx, best = self.ctx, max(sources, key=lambda e: (e.importance, e.confirmed_at))
        ids = [f"{e.id}@{e.version}" for e in sources]
        scope = self._target(best)
        base = proposed(
            ctx, replace(best, content=content), sources, scope, derived_id("consolidated", *ids), best.kind
        )
        shared = {e.conversation for e in sources}
        conversation = shared.pop() if len(shared) == 1 else None
        # Verbatim text is as trusted as its sources; a model's words no more than the model. All entries of a group,
        # which are all that the model was shown, have one trust.
        origin = base.origin.capped(Trust.AGENT) if self.up.asks else base.origin
        proposal = base._replace(source=SOURCE, conversation=conversation, valid_at=None, origin=origin)
        draft = crossed(self.up, [e.id for e in sources], proposal, best.kind)
        if draft is None:
            return None
        setting = Setting(ctx.spec, ctx.taxonomy, ctx.now)
        secret = self.target.store.secret()
        planned = plan(draft, setting, actor=str(ctx.actor), embedding=embedded(ctx, "", draft.content), secret=secret)
        (save,) = (op for op in planned.operations if isinstance(op, SaveEntry))
        cause = f"{len(sources)} entries became one"
        return replace(save, action="entry.consolidated", cause=cause)

    def _target(self, entry: Entry) -> Scope:
        """Return the scope of the new entry: a transient tier compounds into the broader one that the spec names."""
        tier = self.ctx.spec.tier(self.target.tier)
        to = self.ctx.spec.behaviour(tier.name, entry.kind).promotion.to
        if tier.persistent or not to or self.ctx.store(to) is not self.target.store:
            return entry.scope
        return scope_above(self.ctx, entry, to) or entry.scope

    def _forgotten(self, entry: Entry, by: str, cause: str) -> SaveEntry:
        at, actor = self.ctx.now, str(self.ctx.actor)
        moved = entry.moved(State.FORGOTTEN, at=at, cause=cause, actor=actor, superseded_by=by)
        return SaveEntry(replace(moved, version=entry.version + 1), entry.version, "entry.forgotten", cause)


def _rewrite_digest(up: Upkeep, id: str) -> None:
    """Let the model shorten the digest of an ended scope. Without a model, or if somebody has changed it, it stays.

    A note that the model leaves out stays in the digest, word for word.
    """
    step = f"digest:{id}"
    entry = up.ctx.local.entries([id]).get(id)
    if not up.asks or up.task is None or up.task.journaled(step):
        return
    if entry is None or entry.state is not State.ACTIVE or entry.version != 1:
        return
    head, notes = notes_of(entry.content)
    group = [Weighed(replace(entry, content=note), entry.importance) for note in notes]
    most = min(MOST_CHARS, up.ctx.spec.reference_only.max_chars)
    asked = prompt("consolidate", up.ctx.prompts, most=str(most))
    try:
        text = ask(up.task, f"ask:{id}", asked, question(group), lambda data: _read(data, group, most))
    except ChatMalformed as error:
        up.drop("rewritten", [id], error.message, step=step)
        return
    if text is None:
        up.task.commit(step, {"counts": {}})  # the model made nothing of them
        return
    rest = [f"- {note}" for position, note in enumerate(notes) if position not in text.sources]
    content = "\n".join([f"{head.removesuffix(':')}: {text.content}", *rest])
    proposal = proposed(up.ctx, replace(entry, content=content), [entry], entry.scope, id, entry.kind)
    draft = crossed(up, [id], proposal, entry.kind)
    if draft is not None:
        trust, cause = min(entry.trust, Trust.AGENT), f"a model rewrote {len(text.sources)} notes"
        after = replace(entry, content=draft.content, trust=trust, updated_at=up.ctx.now, version=entry.version + 1)
        vector = embedded(up.ctx, entry.content, after.content)
        save = SaveEntry(after, entry.version, "entry.consolidated", cause, draft.ledger, vector)
        up.commit(up.ctx.local, "rewritten", [save], step=step)


def _read(data: Mapping[str, Any], group: Sequence[Weighed], most: int) -> Text | None:
    """Read a model's text. InvalidInput if it has words that its sources lack, or leaves a negation of theirs out."""
    text = answer(data, group, most)
    if text is None:
        return None
    sources = "\n".join(group[position].entry.content for position in text.sources)
    missing = missing_words(text.content, question([group[position] for position in text.sources]))
    if missing:
        shown = ", ".join(sorted(missing)[:5])
        raise InvalidInput(f'"text" has words that none of its sources has: {shown}')
    if denies(sources) and not denies(text.content):
        raise InvalidInput('"text" denies nothing, and one of its sources does')
    return text


def merge(
    up: Upkeep, target: Target, found: Sequence[Weighed], near: Mapping[str, Vector], rule: Consolidation
) -> list[Weighed]:
    """Join each group of copies in one commit; return the entries that this run has not changed.

    All wordings stay active, and a read shows one with the others under it. Where the spec lets the rules retire
    entries, one wording stays.
    """
    order = recency if rule.style == "supersession" else support
    gone: set[str] = set()
    for group in copies(found, near, rule.merge_cosine, order):
        if up.ctx.spec.behaviour(target.tier, group.kept.entry.kind).conflict.by_rule is not ByRule.RETIRE:
            if pairs := _same(up.ctx, target, group):
                up.commit(target.store, "merged", (), pairs=pairs, count=len(pairs))
            continue
        saves = _fold(up.ctx, group)
        if up.commit(target.store, "merged", saves, main=group.kept.id):
            gone |= {w.id for w in group.copies} | {group.kept.id}
    # The kept entry has a new version: this run does not change it again.
    return without(found, gone)


def _same(ctx: CallContext, target: Target, group: Copies) -> list[SaveRivalry]:
    """Return the pairs of a group that are not noted yet."""
    kept, why = group.kept.entry, "they say the same"
    known = {pair.beside(kept.id) for pair in target.store.rivals([kept.id])}
    ids = [w.id for w in group.copies if w.id not in known]
    return [SaveRivalry(Rivalry(kept.id, id, Relation.SAME, why, ctx.now)) for id in ids]


def _fold(ctx: CallContext, group: Copies) -> list[SaveEntry]:
    kept, now = group.kept.entry, ctx.now
    cause = f"says the same as {kept.id}"
    gone = [_superseded(ctx, w.entry, kept, cause) for w in group.copies]
    members = [kept, *(w.entry for w in group.copies)]
    evidence = tuple(dict.fromkeys(quote for e in members for quote in e.evidence))[:MOST_EVIDENCE]
    trusted = [e for e in members if e.trust >= kept.trust]  # a less trusted copy adds neither support nor labels
    fuller = replace(
        kept,
        merged_count=sum(e.merged_count for e in members),
        confirmed_at=max(e.confirmed_at for e in members),
        importance=max(e.importance for e in trusted),
        tags=tuple(dict.fromkeys(tag for e in trusted for tag in e.tags)),
        evidence=evidence,
        updated_at=now,
        version=kept.version + 1,
    )
    ledger = (
        Verdict("merge", "kept", "best supported of those that say the same", {"targets": [s.entry.id for s in gone]}),
    )
    return [*gone, SaveEntry(fuller, kept.version, "entry.merged", f"{len(gone)} copies folded in", ledger)]


def _superseded(ctx: CallContext, entry: Entry, by: Entry, cause: str) -> SaveEntry:
    moved = entry.moved(State.SUPERSEDED, at=ctx.now, cause=cause, actor=str(ctx.actor), superseded_by=by.id)
    return SaveEntry(replace(moved, version=entry.version + 1), entry.version, "entry.superseded", cause)


def settle(up: Upkeep, target: Target, found: Sequence[Weighed], near: Mapping[str, Vector]) -> list[Weighed]:
    """Let the latest of contradicting statements hold, where the spec lets the rules retire others.

    A less trusted one never overrules a more trusted one.
    """
    setting = Setting(up.ctx.spec, up.ctx.taxonomy, up.ctx.now)
    gone: set[str] = set()
    for old, new, why in outdated(found, near):
        conflict = up.ctx.spec.behaviour(target.tier, new.entry.kind).conflict
        if conflict.by_rule is not ByRule.RETIRE:
            continue
        save = retire(old.entry, new.entry, setting, f"{why}; the later one holds", str(up.ctx.actor))
        if up.commit(target.store, "superseded", [save]):
            gone.add(old.id)
    return without(found, gone)
