"""The steps that need no neighbours: sanitise, guard, gate, categorise, admit, policy."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from lukasa.model.entry import SENSITIVE, Category
from lukasa.model.errors import MirrorsCanonical, WrongTier
from lukasa.model.secrets import redact, redact_all
from lukasa.model.text import has_hidden_characters, in_first_person, is_unspaced, words
from lukasa.model.values import Curator, Gate, Kind, Trust
from lukasa.spec.taxonomy import Taxonomy
from lukasa.spec.types import WriteMode
from lukasa.write.plan import Draft, Setting, Step
from lukasa.write.transforms import crossing, through

_ARTIFACTS = re.compile(
    r"\s*(?:[-*>#]+\s*)?(?:"
    r"(?:add|insert|append|put|place|move|paste)\b.{0,80}\b(?:after|before|above|below|at the (?:end|top|bottom))\b"
    r"|(?:add|insert|append)\s+(?:after|before|above|below|to)\b"
    r"|replace\b.{0,120}\bwith\b"
    r"|replace\s*(?::|[\"'`“]|(?:the\s+)?(?:line|section|paragraph|heading|block|text|sentence|above|below|following)\b)"
    r"|(?:delete|remove|update|edit|rewrite)\s+(?:the\s+)?(?:line|section|paragraph|heading|block|text|sentence)s?\b"
    r")",
    re.IGNORECASE | re.DOTALL,
)
_ROOTED = re.compile(r"(?:(?<=\s)|^)(?:~|\.{1,2})?/[\w.-]|\b[A-Za-z]:\\")
# All the parts of a relative path at once, so that a search never reads a part twice; then a part with an extension.
_RELATIVE = re.compile(r"(?<![\w-])-*+\w[\w-]*+(?:/[\w.-]++)++")
_EXTENSION = re.compile(r"/[\w.-]+\.\w{1,8}\b")
_PROGRAMS = "sudo git npm pip docker kubectl make cargo uv".split()
_COMMAND = rf"`[^`\n]{{2,200}}`|(?:^|\s)(?:\$ |(?:{'|'.join(_PROGRAMS)}) )\S"


def _names_path(text: str) -> bool:
    return _ROOTED.search(text) is not None or any(_EXTENSION.search(path[0]) for path in _RELATIVE.finditer(text))


# Each test with substrings of which the text must hold one: a search for these first is many times as fast.
_SIGNALS = (
    ("decision record", re.compile(r"\bADR[- ]?\d{1,5}\b", re.IGNORECASE).search, ("adr",)),
    ("file path", _names_path, ("/", "\\")),
    ("command", re.compile(_COMMAND).search, ("`", "$ ", *(f"{name} " for name in _PROGRAMS))),
)
SUGGESTED = 0.5  # the confidence in a category that no word of the text supports
PREFERRED = frozenset({"preferences", "rules-conventions"})


def sanitise(draft: Draft, setting: Setting) -> Draft:
    """Apply the spec's gates for this tier, then see to secrets. Hold others' texts with hidden characters.

    The owner's own words, put on purpose, are kept with their secrets and marked sensitive. Secrets of everybody else,
    and of observed texts, are redacted.
    """
    tier = draft.proposal.scope.tier
    gates = [gate for gate in setting.spec.sanitization if not gate.to and gate.into in ("", tier)]
    content, changed = through(gates, draft.content, draft.trust)
    if changed:
        draft = draft._replace(content=content).noting("sanitise", "changed", crossing(gates), **changed)
        if not content.strip():
            return _discard(draft, "no part of the text may enter this tier")
    else:
        draft = draft.noting("sanitise", "unchanged", "nothing to transform")
    draft = _without_secrets(draft)
    if has_hidden_characters(draft.content) and draft.trust < Trust.AUTHOR:
        reason = "the text holds characters that a reader would not see"
        return draft.ruled(Gate.HOLD, 1.0, reason).noting("sanitise", "hold", reason)
    return draft


def _without_secrets(draft: Draft) -> Draft:
    p = draft.proposal
    on_purpose = p.curator is Curator.AUTHOR and not p.observed
    if SENSITIVE in p.metadata:
        if on_purpose:
            return draft
        p = p._replace(metadata={key: value for key, value in p.metadata.items() if key != SENSITIVE})
        draft = draft._replace(proposal=p)
    content, count = redact(draft.content)
    about = {"tags": redact_all(p.tags), "source": redact(p.source)[0], "metadata": redact_all(dict(p.metadata))}
    hidden = sum(value != getattr(p, name) for name, value in about.items())
    if not count + hidden:
        return draft
    if on_purpose:
        reason = "the text holds a secret: it is kept as it is and marked sensitive"
        marked = p._replace(metadata={**p.metadata, SENSITIVE: True})
        return draft._replace(proposal=marked).noting("secrets", "sensitive", reason)
    reason = "a secret is replaced by a mark: only the owner can store one, on purpose"
    return draft._replace(proposal=p._replace(**about), content=content).noting(
        "secrets", "redacted", reason, count=count + hidden
    )


def guard(draft: Draft, setting: Setting) -> Draft:
    """Refuse or hold a text that repeats a canonical body: memory references it, and never copies it."""
    rule = setting.spec.reference_only
    mine: frozenset[tuple[str, ...]] | None = None
    for body in setting.canonical:
        if body.category not in rule.non_mirror:
            continue
        theirs = _body_trigrams(body.body)
        if theirs and mine is None:
            mine = _trigrams(draft.content)
        overlap = _share(mine, theirs) if mine else 0.0
        if overlap < rule.similarity:
            continue
        reason = f"repeats {overlap:.0%} of its word trigrams from {body.id}, which may only be referenced"
        if rule.calibration == "primary":
            raise MirrorsCanonical(
                f"this text {reason}",
                mirrors=body.id,
                fix=f"store your conclusion from {body.id}, and link to it instead",
            )
        return draft.ruled(Gate.HOLD, overlap, reason).noting("guard", "hold", reason, mirrors=body.id)
    return draft.noting("guard", "pass", f"compared with {len(setting.canonical)} canonical bodies")


def trigram_overlap(text: str, body: str) -> float:
    """The share of a text's word trigrams that a body holds too."""
    return _share(_trigrams(text), _body_trigrams(body))


def _share(mine: frozenset[tuple[str, ...]], theirs: frozenset[tuple[str, ...]]) -> float:
    return 0.0 if theirs.isdisjoint(mine) else len(mine & theirs) / len(mine)


def _trigrams(text: str) -> frozenset[tuple[str, ...]]:
    sequence = words(text)
    return frozenset(zip(sequence, sequence[1:], sequence[2:], strict=False))


_body_trigrams = lru_cache(maxsize=256)(_trigrams)


def gate(draft: Draft, setting: Setting) -> Draft:
    """Allow, hold or discard. Rules overrule the verdict of the proposal.

    The rules of form are for observed texts: a text that somebody puts on purpose may have any form and length, unless
    the spec applies the rules to all writes.
    """
    if draft.proposal.path is not None:
        return draft.noting("gate", str(draft.gate.verdict), draft.gate.reason or "a file is kept as it is")
    write = setting.behaviour(draft).write
    if draft.proposal.observed or write.form_rules == "all":
        if weight(draft.content) < write.min_chars:
            return _discard(draft, f"shorter than {write.min_chars} characters")
        if is_artifact(draft.content):
            return _discard(draft, "reads as an editing instruction, not as something to remember")
    if draft.gate.verdict is Gate.DISCARD:
        return _discard(draft, draft.gate.reason or "the observer discarded it")
    found = signals(draft.content)
    suggested = draft.proposal.gate
    doubted = suggested is not None and suggested.confidence < 1.0  # signals cannot lift a certain hold
    if found and draft.gate.verdict is Gate.HOLD and suggested is not None and doubted and draft.gate == suggested:
        reason = f"a {found[0]} is durable signal"
        return draft.ruled(Gate.ALLOW, max(0.8, suggested.confidence), reason).noting("gate", "allow", reason)
    reason = draft.gate.reason or (f"holds a {found[0]}" if found else "no rule speaks against it")
    return draft.noting("gate", str(draft.gate.verdict), reason)


def is_artifact(text: str) -> bool:
    """Whether a text is an editing instruction instead of a statement."""
    return _ARTIFACTS.match(text) is not None


def signals(text: str) -> tuple[str, ...]:
    """The signs of lasting value in a text: a decision record, a file path, a command."""
    lower = text.lower()
    found = []
    for name, holds, pieces in _SIGNALS:
        for piece in pieces:
            if piece in lower:
                if holds(text):
                    found.append(name)
                break
    return tuple(found)


def weight(text: str) -> int:
    """Length in letters: a digit or a Hangul syllable counts two, a character of a script without spaces three.

    They say about as much as that many Latin letters.
    """
    return sum(map(_letters, text.strip()))


def _letters(character: str) -> int:
    if character.isdecimal() or "\uac00" <= character <= "\ud7a3":
        return 2
    return 3 if is_unspaced(character) else 1


def _discard(draft: Draft, reason: str) -> Draft:
    return draft.ruled(Gate.DISCARD, 1.0, reason).noting("gate", "discard", reason)


def categorise(draft: Draft, setting: Setting) -> Draft:
    """Match the taxonomy's words; a tie gives no category. If the proposal has no kind, the category decides it."""
    scores = category_scores(draft.content, setting.taxonomy)
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:2] if scores else []
    unclear = not best or (len(best) > 1 and best[0][1] == best[1][1])
    suggested = draft.proposal.category
    if unclear and suggested and any(concept.id == suggested for concept in setting.taxonomy.concepts):
        draft = draft._replace(category=Category(suggested, SUGGESTED, setting.taxonomy.version))
        draft = draft.noting("categorise", suggested, "the words do not decide; the proposal names this category")
    elif not best:
        draft = draft.noting("categorise", "none", "the text holds no word of the taxonomy")
    elif unclear:
        draft = draft.noting("categorise", "ambiguous", f"{best[0][0]} and {best[1][0]} match equally")
    else:
        name, score = best[0]
        confidence = round(score / sum(scores.values()), 3)
        draft = draft._replace(category=Category(name, confidence, setting.taxonomy.version))
        draft = draft.noting("categorise", name, "keyword match", confidence=confidence)
    if draft.proposal.kind:
        return draft
    kind = _kind(draft, setting)
    return draft if kind is draft.kind else draft._replace(kind=kind)


def category_scores(content: str, taxonomy: Taxonomy) -> dict[str, float]:
    """Score each category by the words and phrases that a text holds; a phrase counts once for each of its words."""
    found = words(content)
    scores: dict[str, float] = {}
    pointers = _pointers(taxonomy)
    if pointers.keys().isdisjoint(found):
        return scores
    text = f" {' '.join(found)} "
    for word in pointers.keys() & set(found):
        for alternate, id in pointers[word]:
            if alternate in text:
                scores[id] = scores.get(id, 0.0) + alternate.count(" ") - 1.0
    return scores


_Pointers: TypeAlias = "dict[str, list[tuple[str, str]]]"
_POINTERS: dict[int, tuple[Taxonomy, _Pointers]] = {}


def _pointers(taxonomy: Taxonomy) -> _Pointers:
    """The taxonomy's words and phrases, between spaces, by their first word; made once for each taxonomy."""
    made = _POINTERS.get(id(taxonomy))
    if made is None:
        pointers: _Pointers = {}
        for concept in taxonomy.concepts:
            for alternate in dict.fromkeys(concept.alternates):
                pointers.setdefault(alternate.split(" ")[0], []).append((f" {alternate} ", concept.id))
        if len(_POINTERS) >= 16:
            _POINTERS.clear()
        made = _POINTERS[id(taxonomy)] = (taxonomy, pointers)  # holds the taxonomy, so that its id is not reused
    return made[1]


def _kind(draft: Draft, setting: Setting) -> Kind:
    typology = setting.spec.tier(draft.proposal.scope.tier).typology
    preferred = draft.category is not None and draft.category.name in PREFERRED
    if preferred and Kind.PROCEDURAL in typology:
        return Kind.PROCEDURAL
    return Kind.SEMANTIC if Kind.SEMANTIC in typology else typology[0]


def admit(draft: Draft, setting: Setting) -> Draft:
    """Refuse a text that the tier does not admit, and name a tier that does.

    The writer's word comes first: a stated kind or category. Then the words decide: the taxonomy's categories that the
    tier admits against those that it does not. If they leave doubt, a text in the first person is about its speaker, so
    a tier for preferences admits it.
    """
    tier = setting.spec.tier(draft.proposal.scope.tier)
    if not tier.admits:
        return draft
    reason = _admitted(draft, setting, tier.admits)
    if reason:
        return draft.noting("admit", "pass", reason)
    other = next((t.name for t in reversed(setting.spec.tiers) if t.persistent and not t.admits), "")
    known = f"is about {draft.category.name}" if draft.category else "shows no sign of these"
    own = next((word for word in tier.admits if word in set(Kind)), "")
    raise WrongTier(
        f"tier {tier.name!r} holds only {', '.join(tier.admits)}, and this text {known}"
        + (f": it belongs in tier {other!r}" if other else ""),
        tier=other,
        fix=(f"put it into tier {other!r}" if other else "put it into another tier")
        + (f"; if it is {own} all the same, say so: kind={own!r}" if own else ""),
    )


def _admitted(draft: Draft, setting: Setting, admits: tuple[str, ...]) -> str:
    """Why a tier admits a text; empty if it does not."""
    p = draft.proposal
    scores = category_scores(draft.content, setting.taxonomy)
    inside = max((score for name, score in scores.items() if name in admits), default=0.0)
    outside = max((score for name, score in scores.items() if name not in admits), default=0.0)
    stated = next((str(word) for word in (p.kind, p.category) if word and word in admits), "")
    if stated and (p.curator is Curator.AUTHOR or inside >= outside):
        return f"the writer says that it is {stated}"
    if inside > outside:
        return "its words are those of a category that the tier admits"
    if inside == outside and "preferences" in admits and in_first_person(draft.content):
        return "it speaks of its speaker"
    return ""


def policy(draft: Draft, setting: Setting) -> Draft:
    """Ask the tier's write mode. Hold untrusted procedures and preferences, and writes of low confidence.

    A text that was observed is nobody's decision: where only decisions are written, it is discarded.
    """
    write, observed = setting.behaviour(draft).write, draft.proposal.observed
    if observed and write.mode is WriteMode.EXPLICIT:
        reason = "this tier is written on a decision to remember, and nobody asked to remember this"
        return draft.ruled(Gate.DISCARD, 1.0, reason).noting("policy", "discard", reason)
    preferred = draft.category is not None and draft.category.name in PREFERRED
    if draft.trust is Trust.UNTRUSTED and (draft.kind is Kind.PROCEDURAL or preferred):
        reason = "procedures and preferences of untrusted origin wait for a person"
        return draft.ruled(Gate.HOLD, 1.0, reason).noting("policy", "hold", reason)
    agent = draft.proposal.curator is Curator.AGENT or observed
    if agent and write.mode is WriteMode.PROMOTION:
        reason = by_promotion_only(draft.kind)
        return draft.ruled(Gate.HOLD, 1.0, reason).noting("policy", "hold", reason)
    if agent and draft.gate.verdict is Gate.ALLOW and draft.gate.confidence < write.confidence:
        reason = f"confidence {draft.gate.confidence:.2f} is below the {write.confidence:.2f} that this tier requires"
        return draft.ruled(Gate.HOLD, draft.gate.confidence, reason).noting("policy", "hold", reason)
    return draft.noting("policy", "pass", f"{draft.proposal.curator} may write {draft.kind} memory here")


def by_promotion_only(kind: Kind) -> str:
    """The reason of a hold that ends by itself, once enough independent observations say the same."""
    return f"{kind} memory of this tier is made active by promotion, not by an agent"


CHECK: tuple[Step, ...] = (sanitise, guard, gate, categorise, admit, policy)
