"""Verdicts of triage on proposals: the rules of the first tier, and the parsing of a model's verdicts, the second."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lukasa.curated import document
from lukasa.curated.document import Dated
from lukasa.curated.reflection import MOST_CHANGE
from lukasa.model.amendment import Amendment
from lukasa.model.errors import InvalidInput
from lukasa.model.statements import says_the_same, statement
from lukasa.model.text import has_hidden_characters, terms
from lukasa.spec.types import Triage

USUAL = Triage()
ALIKE = 0.6
MOST_REASON = 300

Outcome = Literal["promote", "merge", "reject", "review", "judge"]


class ProposalFacts(Struct, frozen=True):
    """Facts about a proposal that the rules need in addition to its text.

    `signals` are signs of lasting value in it, such as a path. `restricted` and `untrusted` are about the entries
    behind it; `standing` says whether any of them still holds. `near` are the lines that an embedder finds close, None
    without one.
    """

    signals: tuple[str, ...]
    artifact: bool
    short: bool
    standing: bool
    untrusted: bool
    restricted: bool
    near: tuple[Dated, ...] | None = None


class TriageRuling(Struct, frozen=True):
    """The decision of a rule and its reason. `judge` leaves it to the next tier."""

    outcome: Outcome
    reason: str
    into: Dated | None = None


def rule(amendment: Amendment, body: str, facts: ProposalFacts, limits: Triage = USUAL) -> TriageRuling:
    return (
        _rejected(amendment, body, facts, limits)
        or _reserved(amendment, body, facts)
        or _accepted(amendment, body, facts, limits)
    )


def _rejected(amendment: Amendment, body: str, facts: ProposalFacts, limits: Triage) -> TriageRuling | None:
    if not facts.standing:
        return TriageRuling("reject", "its sources no longer hold")
    if facts.artifact:
        return TriageRuling("reject", "it reads as an editing instruction, not as something to remember")
    if facts.short:
        return TriageRuling("reject", "it is too short to say anything")
    if document.twin(body, amendment.change) is not None:
        return TriageRuling("reject", "the page says exactly this already")
    if amendment.confidence < limits.reject_below:
        return TriageRuling("reject", f"confidence {amendment.confidence:.2f} is below {limits.reject_below:g}")
    return None


def _reserved(amendment: Amendment, body: str, facts: ProposalFacts) -> TriageRuling | None:
    """Only a person may put these on the page, no rule and no model."""
    if facts.untrusted:
        return TriageRuling("review", "it is based on a text of unknown authorship")
    if facts.restricted:
        return TriageRuling(
            "review", "it comes from a tier that only its participants read, and the page is read by all"
        )
    if has_hidden_characters(amendment.change):
        return TriageRuling("review", "it holds characters that a reader would not see")
    if document.contradicted(body, amendment.change) is not None:
        return TriageRuling("review", "it contradicts a line of the page")
    return None


def _accepted(amendment: Amendment, body: str, facts: ProposalFacts, limits: Triage) -> TriageRuling:
    same = similar(body, amendment.change, facts.near)
    if same is not None:
        return TriageRuling("merge", "a line of the page says the same", same)
    if facts.signals and amendment.confidence > limits.promote_above:
        above = f"confidence {amendment.confidence:.2f} is above {limits.promote_above:g}"
        reason = f"it names a {facts.signals[0]}, and {above}"
        return TriageRuling("promote", reason)
    return TriageRuling("judge", "no rule decides it")


def similar(body: str, text: str, near: Sequence[Dated] | None) -> Dated | None:
    """A line that says the same as the text, or less, or more; with an embedder, only among the close lines.

    Without one, most of the words must be in both: a short statement may be part of a long one by chance.
    """
    lines = [d for d in document.lines(body) if _alike(text, d.text)] if near is None else near
    return next((d for d in lines if says_the_same(text, d.text) or says_the_same(d.text, text)), None)


def _alike(one: str, other: str) -> bool:
    a, b = set(terms(one)), set(terms(other))
    return len(a & b) > ALIKE * len(a | b)


# The second tier


class Judged(Struct, frozen=True):
    decision: Literal["promote", "reject", "review"]
    text: str
    reason: str


def briefing(batch: Sequence[Amendment], body: str) -> str:
    rows = [
        json.dumps(
            {"n": n, "section": a.section, "change": a.change, "confidence": a.confidence, "sources": len(a.sources)},
            ensure_ascii=False,
        )
        for n, a in enumerate(batch, 1)
    ]
    return f"The page as it is:\n{json.dumps(body, ensure_ascii=False)}\n\nProposals:\n" + "\n".join(rows)


def read_verdicts(data: Mapping[str, Any], count: int) -> tuple[Judged, ...]:
    """Read a verdict for each proposal, in their order. InvalidInput unless each has exactly one."""
    listed = data.get("verdicts")
    if not isinstance(listed, list) or not all(isinstance(given, dict) for given in listed):
        raise InvalidInput("verdicts must be a list of objects")
    by_number = {given.get("n"): given for given in listed}
    if len(listed) != count or any(n not in by_number for n in range(1, count + 1)):
        raise InvalidInput(f"verdicts must have each n from 1 to {count} once")
    return tuple(_verdict(n, by_number[n]) for n in range(1, count + 1))


def _verdict(n: int, given: Mapping[str, Any]) -> Judged:
    decision, text, reason = given.get("decision"), given.get("text", ""), given.get("reason", "")
    if decision not in ("promote", "reject", "review"):
        raise InvalidInput(f"decision of verdict {n} must be promote, reject or review")
    if not isinstance(text, str) or len(text) > MOST_CHANGE or "\x00" in text:
        raise InvalidInput(f"text of verdict {n} must be a text of at most {MOST_CHANGE} characters")
    if decision == "promote" and not text.strip():
        raise InvalidInput(f"verdict {n} promotes and gives no text")
    if not isinstance(reason, str) or (decision != "promote" and not reason.strip()):
        raise InvalidInput(f"verdict {n} gives no reason")
    return Judged(decision, document.one_line(text), " ".join(reason.split())[:MOST_REASON])


def unfaithful(clean: str, change: str) -> str:
    """The reason not to use a model's wording: its negation, names or numbers differ from the proposal; else empty."""
    new, old = statement(clean), statement(change)
    if new.negated != old.negated:
        return "the wording of the model negates it, or no longer does"
    if new.specifics - old.specifics - set(old.terms) - set(old.words):
        return "the wording of the model names something that the proposal does not"
    if {w for w in old.words if any(c.isdigit() for c in w)} - set(new.words):
        return "the wording of the model leaves out a number"
    return ""
