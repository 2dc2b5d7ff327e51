"""Resolve a request for a scrub to exactly one extent or refuse it; list the data it would remove; confirm it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from lukasa.model.entry import Scope
from lukasa.model.errors import Conflict, InvalidInput, InvalidScope
from lukasa.model.scrub import Extent, Holdings, KeptRow, Mode, manifest_digest
from lukasa.spec.types import Tier

ACCOUNT = "account"
TIER_MODES = (Mode.FULL, Mode.KEEP_NAMED)


def one(value: object, what: str) -> str:
    """The name of exactly one thing. An empty name, blanks and patterns mean too much, and are refused."""
    if not isinstance(value, str) or not value.strip() or set(value) & set("*%?"):
        raise InvalidScope(
            f"{what} must be one name, without wildcards", fix="name exactly one: no scrub removes everything"
        )
    return value


def tier_mode(value: object) -> Mode:
    for mode in TIER_MODES:
        if value in (mode, str(mode)):
            return mode
    raise InvalidInput(f"no such mode: {str(value)[:60]!r}", fix=f"use one of: {', '.join(TIER_MODES)}")


def of_tier(tier: Tier, scope: Scope, mode: Mode, workspace: str, *, linked: bool = False) -> Extent:
    """The extent of a tier's scope. If it is all of the tier in this store, the named entries belong to it too."""
    whole = all(key.name in ("account", "workspace") for key in tier.anchor)
    at_home = tier.home == "workspace"
    conversation = scope.value("conversation")
    place = workspace if at_home else ACCOUNT
    return Extent(place, mode, scope, conversation, whole=whole, copies=whole and at_home, linked=linked)


def of_thread(conversation: str, workspace: str, *, linked: bool = False) -> Extent:
    return Extent(workspace, Mode.PURGE_THREAD, conversation=conversation, linked=linked)


SAMPLE = 20
SHORTEST = 12

# The kinds of data that a scrub removes, in the order of the manifest.
_KINDS = (
    ("entries", "entries, of every state and owner"),
    ("versions", "former and present texts of entries"),
    ("vectors", "vectors"),
    ("named", "named entries"),
    ("named_versions", "texts of named entries"),
    ("notes", "working notes of the conversation"),
    ("checkpoints", "checkpoints and writes of the chat's thread"),
    ("transcripts", "transcripts of sessions"),
    ("utterances", "messages of transcripts"),
    ("amendments", "proposals for the curated page"),
    ("jobs", "jobs that are over or half done, with their journals"),
    ("answers", "answers stored for requests that are sent again"),
    ("documents", "documents that hold the words, or are the source"),
    ("passages", "passages of documents"),
    ("items", "items of graphs and tools"),
    ("confirmations", "repeated statements"),
    ("rivals", "pairs of entries whose reason holds the words"),
    ("citations", "citations that name the words"),
    ("links", "links to documents with the words"),
    ("channels", "channels whose name holds the words"),
    ("actions", "actions whose description holds the words"),
    ("points", "telemetry events whose words are emptied"),
    ("submissions", "submissions to the corpus that rest on them lose their words"),
    ("disclosures", "texts that went to agents, in the ledger; what else was in them stays listed"),
    ("events", "events that are emptied; their position, time, actor and action stay"),
)


class Line(Struct, frozen=True):
    """One kind of data: how many are removed, and a description."""

    kind: str
    count: int
    what: str


class Manifest(Struct, frozen=True):
    """The data that a scrub would remove now. Nothing has been removed."""

    scope: Mapping[str, Any]
    mode: Mode
    lines: tuple[Line, ...]
    sample: tuple[str, ...]
    warnings: tuple[str, ...]
    digest: str
    kept: tuple[KeptRow, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        return {line.kind: line.count for line in self.lines}

    def summary(self) -> dict[str, Any]:
        """The part that the log keeps: numbers and ids, never a text."""
        kept = {"kept": {row.id: list(row.actions) for row in self.kept}} if self.kept else {}
        return {"counts": self.counts, "sample": list(self.sample), **kept}


def manifest(extent: Extent, holdings: Holdings, *, checkpoints: int = 0, visible: Sequence[str] = ()) -> Manifest:
    """Make the manifest. `visible` are the entries whose ids may be shown; it shows a sample of them.

    Every visible entry that stays because an action rests on it is named, with the action.
    """
    counts = {kind: len(getattr(holdings, kind)) for kind in ("entries", "named", "notes", "transcripts", "amendments")}
    counts |= {**holdings.counts, "checkpoints": checkpoints}
    lines = tuple(Line(kind, counts[kind], what) for kind, what in _KINDS if counts.get(kind))
    return Manifest(
        extent.plain(),
        extent.mode,
        lines,
        tuple(sorted(set(visible) & {id for id, _ in holdings.entries})[:SAMPLE]),
        tuple(_warnings(extent, holdings)),
        manifest_digest(extent, holdings),
        tuple(row for row in holdings.kept if row.id in visible),
    )


def _warnings(extent: Extent, holdings: Holdings) -> list[str]:
    told = []
    if linked := holdings.counts.get("linked"):
        told.append(f"an action rests on {linked} of these entries, and will rest on nothing")
    if holdings.kept:
        names = ", ".join(sorted({action for row in holdings.kept for action in row.actions})[:5])
        stay = "1 entry stays" if len(holdings.kept) == 1 else f"{len(holdings.kept)} entries stay"
        told.append(f"{stay}, because an action rests on each of them: {names}")
    if running := holdings.counts.get("running"):
        told.append(f"{running} jobs are running: while they are, this scrub is refused")
    if extent.place == "account":
        told.append("the account is shared: every workspace loses this")
    if extent.mode is Mode.FULL and holdings.named:
        told.append("named entries that the spec provides come back with its texts")
    return told


class Planned(Protocol):
    """A plan with a digest."""

    @property
    def digest(self) -> str: ...


def confirmed(shown: Planned, typed: object) -> None:
    """Raise unless `typed` repeats the digest of this manifest, or its beginning."""
    given = typed.strip().lower() if isinstance(typed, str) else ""
    if len(given) < SHORTEST:
        raise InvalidInput(
            "a scrub needs the digest of its plan", fix=f"plan it, and repeat at least {SHORTEST} characters of it"
        )
    if not shown.digest.startswith(given):
        raise Conflict(
            "the digest does not match the data that a scrub would remove now",
            fix="plan again, read the new plan, and confirm its digest; nothing was removed",
        )
