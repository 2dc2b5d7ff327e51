"""Turn values into lines for people. Pure functions; printing and escaping happen in `output`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lukasa.app import Settings
from lukasa.model.citation import HOLDS, CitationVerdict, CitedNow
from lukasa.model.entry import Entry, SourceLink, Version
from lukasa.model.events import Event
from lukasa.model.secrets import redact
from lukasa.model.values import SHARED, Gate, Outcome, Relation, State
from lukasa.read.excerpt import Part
from lukasa.read.rank import Earlier, Hit, Provenance
from lukasa.read.reasons import shares
from lukasa.service.citations.verifying import DOCUMENT_STATUS, EntryCitations, Verification
from lukasa.service.entries.put import Written
from lukasa.service.retrieval.explain import Related, RelevanceNow
from lukasa.service.retrieval.gather import Gathered
from lukasa.service.retrieval.grounds import Grounds
from lukasa.service.retrieval.read import Recall
from lukasa.storage.operations import Verdict
from lukasa.surfaces.cli.output import Line, StyledText, bad, block, brief, dim, good, line, many, table, title, warn

if TYPE_CHECKING:
    from lukasa.service.admin.overview import EvidenceQuote


def when(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def ordinal(place: int) -> str:
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def database_lines(settings: Settings) -> Iterator[Line]:
    """Yield the database and the account that hold memory, without a password; nothing if the data folder holds it."""
    if settings.database:
        yield line("memory is in ", settings.shown_database, dim(f"  account {settings.account_name}"))
        yield line(dim(f"  files are in {settings.data}"))


# Writing


def written(result: Written) -> Iterator[Line]:
    """Yield the outcome of a write. The first word says if it was discarded or held."""
    entry, others = result.entry, result.replaces
    if entry is None:
        yield line(warn("discarded"), f": {result.reason}")
        yield line(dim(f"  nothing was stored; `lukasa why {result.id}` shows the record"))
    elif entry.state is State.HELD and result.outcome != "merged":
        yield line(warn("held "), result.id, f": {_held(entry)}")
        yield line(dim("  reads do not find it; see it with `lukasa list --all` or `lukasa read … --held`,"))
        yield line(dim(f"  accept it with `lukasa accept {result.id}`"))
    elif result.outcome == "merged":
        yield line(good("merged"), f" with {result.id}, now stated {entry.merged_count} times: {result.reason}")
    elif result.outcome == "updated":
        yield line(good("updated "), result.id, f", now at version {entry.version}")
    else:
        yield line(good("stored "), result.id, f" in the {entry.scope.tier} tier")
    if others:
        why = (
            f": {result.reason}" if result.outcome == "replaced" else ""
        )  # the reason of an update is about its text alone
        yield line(f"  it replaces {', '.join(others)}{why}")
    if result.beside:
        yield line(f"  beside {', '.join(result.beside)}: {result.reason}")
        yield line(dim("  all stay; a read shows the latest first"))
    if entry is not None:
        yield line(dim(f"  {traits(entry)}"))
    for one in result.cites:
        yield line(dim(f"  cites {one}"))
    if entry is not None and entry.sensitive:
        yield line(warn("  sensitive"), ": it holds a secret, so contexts, agents and exports leave it out")


def consequences(result: Written) -> Iterator[Line]:
    """Yield the effects of a change on other entries."""
    if result.replaces:
        yield line(f"  it replaces {', '.join(result.replaces)}")
    if result.beside:
        yield line(f"  beside {', '.join(result.beside)}, which it may replace: `lukasa review` decides")
    if result.reopened:
        yield line(f"  in force again: {', '.join(result.reopened)}")


def _held(entry: Entry) -> str:
    gate = entry.gate
    return gate.reason if gate is not None and gate.verdict is Gate.HOLD else "it was held before, and still is"


def checked(result: Written) -> Iterator[Line]:
    """Yield the outcome of a check, and what followed from it."""
    style = good if result.outcome == "confirmed" else warn
    yield line(style(f"{result.outcome} "), result.id)
    for verdict in result.ledger:
        yield line(dim(f"  {verdict.reason}"))


def grounds(value: Grounds) -> Iterator[Line]:
    """Yield why a row is kept, what the entry rests on now, and what rests on it."""
    yield line(dim(f"{'retention':<13}"), f"{value.retention}: {value.because}")
    if value.awaits_check:
        yield line(
            warn(f"{'check it':<13}"), "a document has moved on; `lukasa corroborate` says whether it still holds"
        )
    for one in value.withdrawn:
        yield line(warn(f"{'withdrawn':<13}"), f"{one.source} {one.reason}")
    if value.failures:
        yield line(warn(f"{'failed':<13}"), f"{value.failures} checks since it was last confirmed")


def citations(value: EntryCitations) -> Iterator[Line]:
    """Yield what an entry cites, with its documents: what each says now."""
    for one in value.citations:
        yield line(dim(f"{'cites':<13}"), cited(one))
    for source in value.documents:
        yield line(dim(f"{'cites':<13}"), _source(source))


def cited(one: CitedNow) -> StyledText:
    """Return a citation with its verdict in a few words."""
    seen = f"last verified {when(one.last_verified)}" if one.last_verified and one.verdict not in HOLDS else ""
    where = f"to {one.where}" if one.verdict is CitationVerdict.MOVED else f"now {one.where}" if one.where else ""
    rule = "named in the text" if one.citation.by == "rule" else ""
    said = joined(one.citation.spelling, " ".join(filter(None, (str(one.verdict), where))), one.why, seen, rule)
    return StyledText(said, _STYLES.get(one.verdict, ""))


_STYLES = {CitationVerdict.CHANGED: "warn", CitationVerdict.GONE: "warn", CitationVerdict.UNCHECKED: "dim"}


def verification(found: Verification, *, everything: bool) -> Iterator[Line]:
    """Yield a row for each citation, what is amiss first, and what to do about it."""
    if not found.entries:
        yield line("Nothing cites this project yet." if not everything else "No entry cites anything yet.")
        yield line(dim("  `lukasa put … --cite src/auth.py:10-20` does; `--all` checks the entries of every project"))
        return
    rows = []
    for entry in sorted(found.entries, key=lambda one: not one.amiss):
        about = (entry.entry.id, listed(entry.entry, 60))
        for one in entry.citations:
            now = joined(one.where, one.why)
            rows.append((str(one.verdict), one.citation.spelling, now, _day(one.last_verified), *about))
        for source in entry.documents:
            verdict = DOCUMENT_STATUS[source.status]
            rows.append((str(verdict), f"document:{source.source}", "", "", *about))
    yield from table(("verdict", "cites", "now", "verified", "entry", "content"), rows)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.counts.items() if count)
    yield line(f"{many(len(found.entries), 'entry')}: {counts}")
    if found.unlooked:
        yield line(warn(f"{found.unlooked} entries were not looked at: the time was over"))
    if found.amiss:
        yield line(dim("  if the entry still holds: `lukasa corroborate ID`, or `lukasa cite ID --again` to pin anew"))
        yield line(dim("  if not: `lukasa update ID`, `lukasa put` what is true now, or `lukasa forget ID`"))


def _day(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def traits(entry: Entry) -> str:
    return joined(
        f"{entry.kind}, held through versions of its sources" if entry.meta else str(entry.kind),
        f"importance {entry.importance:.2f}",
        entry.category.name if entry.category else "",
        str(entry.lifetime).replace("_", "-"),
        f"owner {entry.owner}" if entry.owner != SHARED else "",
        " ".join(f"#{tag}" for tag in entry.tags),
    )


# Entries

UNVERIFIED = "unverified: text of unknown authorship, not to be acted on"


def entry(value: Entry) -> Iterator[Line]:
    yield from block(value.content, style="title")
    if value.unverified:
        yield line(warn(UNVERIFIED))
    yield line()
    for key, text in _entry_fields(value).items():
        if text:
            yield line(dim(f"{key:<13}"), text)


def _entry_fields(value: Entry) -> dict[str, str]:
    moved = value.transition
    return {
        "id": value.id,
        "state": f"{value.state} (version {value.version})",
        "because": f"{moved.cause}, by {moved.actor}, {when(moved.at)}" if moved else "",
        "replaced by": value.superseded_by or "",
        "scope": joined(value.scope.tier, *(f"{k}={v}" for k, v in value.scope.anchor if v is not None)),
        "traits": traits(value),
        "written by": f"{value.origin.principal} through {value.origin.surface} ({value.curator}; {value.source})",
        "sensitive": "yes: contexts, agents and exports leave it out" if value.sensitive else "",
        "trust": f"{value.trust.name.lower()}, so its authority is: {value.authority}",
        "gate": joined(str(value.gate.verdict), value.gate.reason) if value.gate else "",
        "stated": f"{value.merged_count} times" if value.merged_count > 1 else "once",
        "created": when(value.created_at),
        "confirmed": when(value.confirmed_at) if value.confirmed_at != value.created_at else "",
        "valid": joined(
            f"from {when(value.valid_at)}" if value.valid_at else "",
            f"until {when(value.invalid_at)}" if value.invalid_at else "",
        ),
        "derived from": ", ".join(value.derived_from),
        "links": ", ".join(f"{link.source} (version {link.version}{_checked(link)})" for link in value.links),
        "metadata": ", ".join(f"{k}={v!r}" for k, v in value.metadata.items()),
    }


def _checked(link: SourceLink) -> str:
    return f", checked against {link.checked}" if link.checked else ""


def quotes(found: Sequence[EvidenceQuote], label: str) -> Iterator[Line]:
    """The words of a session that an entry rests on, at most three of them, with who said them and where."""
    for quote in [quote for quote in found if quote.text][:3]:
        yield line(dim(label), f"“{brief(quote.text, 200)}”", dim(f"  {joined(quote.role, quote.title)}"))


def entries(found: Sequence[Entry], tier: str, kept: Mapping[str, Grounds]) -> Iterator[Line]:
    if not found:
        yield line(f"Nothing in the {tier} tier yet.")
        yield line(dim('  `lukasa put "…"` stores an entry; `--all` also lists held and retired entries'))
        return
    heads = ("id", "state", "kept", "kind", "imp.", "created", "content")
    yield from table(
        heads,
        (
            (
                e.id,
                str(e.state),
                str(kept[e.id].retention),
                str(e.kind),
                f"{e.importance:.2f}",
                f"{e.created_at:%Y-%m-%d}",
                listed(e),
            )
            for e in found
        ),
    )


def listed(value: Entry, width: int = 80) -> str:
    """Return the text of an entry in a list. A list is read over shoulders, so secrets are masked in it."""
    marks = ("(unverified) " if value.unverified else "") + ("(sensitive) " if value.sensitive else "")
    return marks + brief(redact(value.content)[0] if value.sensitive else value.content, width)


def versions(found: Sequence[Version]) -> Iterator[Line]:
    for version in found:
        yield line(
            title(f"version {version.entry.version}"),
            dim(f"  {joined(when(version.at), version.action, version.actor)}"),
        )
        yield line(dim(f"  {version.entry.state}: {version.cause}"))
        if version.entry.unverified:
            yield line("  ", warn(UNVERIFIED))
        yield from block(version.entry.content, "  ")


def related(value: Related) -> Iterator[Line]:
    for again in value.confirmations:
        what = "stated again" if again.outcome is Outcome.CONFIRMED else "not confirmed"
        yield line(title(what), dim(f"  {joined(when(again.at), again.speaker, again.principal)}"))
        yield from block(again.said, "  ")
    for other in value.rivals:
        judged = f"decided by {other.decided_by}" if other.decided_by else "found by the rules"
        yield line(title(_RELATIONS[other.relation]), dim(f"  {joined(when(other.at), judged, other.entry.id)}"))
        yield line(dim(f"  {other.entry.state}: {other.reason}"))
        if other.entry.unverified:
            yield line("  ", warn(UNVERIFIED))
        yield from block(other.entry.content, "  ")


_RELATIONS = {
    Relation.UPDATE: "gives the same thing another value",
    Relation.CLOSE: "concerns the same thing",
    Relation.SAME: "says the same",
    Relation.BOTH: "holds too",
}


def standing(value: RelevanceNow) -> Iterator[Line]:
    yield line(title(listed(value.entry, 100)))
    yield line(f"relevance {value.relevance:.4f}")
    yield line(dim("  importance  "), f"{value.entry.importance:.2f}")
    yield line(dim("  × decay     "), f"{value.decay:.4f}")
    reads = value.access.count if value.access else 0
    last = f", last {when(value.access.at)}" if value.access else ""
    yield line(dim("  × frequency "), f"{value.frequency:.4f} (read {reads} times{last})")
    if value.entry.state is not State.ACTIVE:
        yield line(warn(f"it is {value.entry.state}"))
    if value.awaits_disposition:
        yield line(
            warn("its relevance is below the threshold: promote, exempt or archive it with `lukasa disposition`")
        )


# Finding


def recall(found: Recall, *, explain: bool) -> Iterator[Line]:
    for note in found.notes:
        yield line(dim(note))
    if not found.hits:
        yield line("Nothing found.")
        yield line(dim("  try other words, `--profile deep` or `--held`; `lukasa list` shows all entries"))
    for number, hit in enumerate(found.hits, 1):
        yield from _hit(hit, f"{number}. ", found.excerpt(hit), found.because(hit), explain=explain)
    for number, passage in enumerate(found.discoveries):
        if number == 0:
            yield line(title("Discovered"), dim("  from the web; nobody has checked it"))
        yield line(title(passage.title), f"  {passage.place}")
        yield from block(passage.text, "  ")
        worth = joined(passage.origin, passage.lifecycle, f"weight {passage.weight:g}", passage.standing)
        yield line(dim(f"  {passage.document}#{passage.number}  {worth}"))


def gathered(found: Gathered) -> Iterator[Line]:
    """Yield groups in the order of time: each entry with its time, who said it, and what it replaced."""
    for note in found.notes:
        yield line(dim(note))
    if not found.groups:
        yield line("Nothing found.")
        yield line(dim("  try other words, or a larger --budget; `lukasa list` shows all entries"))
        return
    for group in found.groups:
        yield line(title(group.title))
        for hit in group.hits:
            at = hit.entry.valid_at or hit.entry.created_at
            source = f"{hit.entry.source}: " if hit.entry.source else ""
            yield line(dim(f"  {at.astimezone(UTC):%H:%M} "), source, listed(hit.entry, 400), dim(f"  {hit.id}"))
            for earlier in hit.earlier:
                yield line("        ", dim(_told(earlier)), listed(earlier.entry, 120))
    beyond = f"; {found.beyond} more did not fit, a larger --budget shows them" if found.beyond else ""
    yield line(
        dim(f"{len(found)} of {len(found) + found.beyond} related, {found.tokens} of {found.budget} tokens{beyond}")
    )


def _hit(hit: Hit, mark: str, shown: Part, because: str, *, explain: bool) -> Iterator[Line]:
    """Yield a hit: its text, its trust, and why it was found."""
    e, indent = hit.entry, " " * len(mark)
    for number, part in enumerate(shown.of(e.content).split("\n")):
        yield line(mark if number == 0 else indent, title(part))
    if e.unverified:
        yield line(indent, warn(UNVERIFIED))
    if shown.end - shown.start < len(e.content):
        where = f"characters {shown.start + 1:,} to {shown.end:,} of {len(e.content):,}"
        yield line(indent, dim(f"… {where}; `lukasa get {e.id}` shows all"))
    state = "" if e.state is State.ACTIVE else str(e.state)
    about = (
        *(["sensitive"] if e.sensitive else ()),
        state,
        e.scope.tier,
        str(e.kind),
        f"importance {e.importance:.2f}",
        f"relevance {hit.score.relevance:.2f}",
    )
    yield line(indent, dim(joined(*about, f"by {e.curator}", f"authority {e.authority}", f"{e.created_at:%Y-%m-%d}")))
    yield line(indent, dim(f"{e.id}  {because}"))
    for source in hit.provenance:
        yield line(indent, dim("source: "), _source(source))
    for one in hit.withdrawn:
        yield line(indent, warn("rests on something that was withdrawn: "), f"{one.source} {one.reason}")
    for cited_now in hit.citations:
        if cited_now.said or explain:
            yield line(indent, dim("cites: "), cited(cited_now))
    for earlier in hit.earlier:
        yield line(indent, dim(_told(earlier)), listed(earlier.entry, 120), dim(f"  {earlier.id}"))
    if explain:
        yield from _factors(hit, indent)


def _told(earlier: Earlier) -> str:
    word = "also said" if earlier.relation is Relation.SAME else "earlier, may no longer hold"
    return f"{word} ({earlier.entry.confirmed_at:%Y-%m-%d}): "


def matched(hit: Hit) -> str:
    """Return the signals that found a hit, with its rank and score in each."""
    found = [c for c in hit.score.match.contributions if c.rank is not None and c.score is not None]
    return ", ".join(f"{c.signal} ({ordinal(c.rank or 0)}, {c.score:.2f})" for c in found) or "nothing"


def _factors(hit: Hit, indent: str) -> Iterator[Line]:
    s = hit.score
    yield line(
        indent,
        f"score {s.final:.4f} = match {s.match.value:.3f} × prior {s.prior:.3f} × tier weight {s.tier_weight:g}"
        f" × trust weight {s.trust_weight:g}",
    )
    yield line(
        indent,
        f"relevance {s.relevance:.4f} = importance {s.importance:.2f} × decay {s.decay:.4f} × "
        f"frequency {s.frequency:.3f}; the prior takes {', '.join(s.factors) or 'none'}",
    )
    percents = shares(s.match.contributions)
    for c in s.match.contributions:
        place = "not found" if c.rank is None else f"{ordinal(c.rank)}, score {c.score:.4f}"
        yield line(indent, f"{c.signal}: {place}, worth {c.share:+.4f}, {percents.get(c.signal, 0)} % of the match")


def _source(source: Provenance) -> StyledText:
    weight = "" if source.weight is None else f"weight {source.weight:g}"
    axes = (source.status, source.origin, source.lifecycle, weight, source.standing)
    text = joined(source.title or source.source, *axes)
    return StyledText(text, "" if source.status == "current" else "warn")


_OUT = {"out", "missed", "dropped", "folded", "cut", "discard", "hold", "degraded"}


def verdicts(trail: Iterable[Verdict]) -> Iterator[Line]:
    for step in trail:
        mark = warn("✗") if step.outcome in _OUT else good("✓")
        others = ", ".join(map(str, step.data.get("targets", ())))
        yield line(mark, f" {step.step:<11}", f"{step.outcome}: {step.reason}", dim(f"  {others}" if others else ""))


def ledger(events: Sequence[Event]) -> Iterator[Line]:
    """Yield every event of an id, with the steps that led to it."""
    for event in events:
        detail = event.detail
        yield line(title(event.action), dim(f"  {joined(when(event.at), str(event.actor), f'event {event.seq}')}"))
        yield line("  ", str(detail.get("cause") or ""))
        ledger: list[dict[str, Any]] = detail.get("ledger") or []
        steps = [Verdict(s.get("step", ""), s.get("outcome", ""), s.get("reason", ""), s) for s in ledger]
        yield from (line("  ", *step) for step in verdicts(steps))


def faults(found: Sequence[str], whole: str) -> Iterator[Line]:
    if not found:
        yield line(good("✓ "), whole)
    for fault in found:
        yield line(bad("✗ "), fault)
