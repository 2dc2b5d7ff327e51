"""Turn values into plain data for `--json`. Keys are field names, times are ISO 8601, ids are text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum, IntEnum
from functools import singledispatch
from os import PathLike, fspath
from typing import Any

from msgspec import Struct
from msgspec.structs import fields, replace

from lukasa.model.citation import CitedNow
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.entry import Access, Entry, Scope
from lukasa.read.context import Context
from lukasa.read.fuse import Contribution
from lukasa.read.rank import Earlier, Hit, Score
from lukasa.read.reasons import shares
from lukasa.service.citations.verifying import EntryCitations
from lukasa.service.entries.put import Written
from lukasa.service.retrieval.gather import Gathered
from lukasa.service.retrieval.read import Recall
from lukasa.storage.operations import Verdict


@singledispatch
def plain(value: Any) -> Any:
    """Return JSON data for any value of the API."""
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(item) for item in value]
    return value


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: plain(getattr(value, f.name)) for f in fields(value)}


@plain.register
def _(value: Scope) -> Any:
    return {"tier": value.tier, **dict(value.anchor)}


@plain.register
def _(value: Entry) -> Any:
    about = {"authority": str(value.authority), "unverified": value.unverified, "sensitive": value.sensitive}
    return {"id": value.id, "tier": value.scope.tier, **_fields(value), **about}


@plain.register
def _(value: Verdict) -> Any:
    return plain(value.plain())


@plain.register
def _(value: Score) -> Any:
    factors = ("final", "importance", "decay", "frequency", "relevance", "prior", "tier_weight", "trust_weight")
    return {name: getattr(value, name) for name in factors} | {
        "match": value.match.value,
        "factors": list(value.factors),
    }


@plain.register
def _(value: Access) -> Any:
    return {"count": value.count, "at": plain(value.at)}


@plain.register
def _(value: Hit) -> Any:
    return {
        "entry": plain(value.entry),
        "score": plain(value.score),
        "matched": _shared(value.score.match.contributions),
        "access": plain(value.access),
        "provenance": plain(value.provenance),
        "withdrawn": plain(value.withdrawn),
        "earlier": plain(value.earlier),
        **({"citations": plain(value.citations)} if value.citations else {}),
    }


def _shared(contributions: Sequence[Contribution]) -> list[Any]:
    """Return the signals of a hit, each with its percent of all that spoke for it."""
    percents = shares(contributions)
    return [plain(one) | {"percent": percents.get(one.signal, 0)} for one in contributions]


@plain.register
def _(value: CitedNow) -> Any:
    """Leave out what is empty: a model reads every word of it."""
    about = {"where": value.where, "why": value.why, "last_verified": plain(value.last_verified)}
    made = {"by": "rule"} if value.citation.by == "rule" else {}
    return {
        "cites": value.citation.spelling,
        "verdict": str(value.verdict),
        **{key: told for key, told in about.items() if told},
        **made,
    }


@plain.register
def _(value: EntryCitations) -> Any:
    return {
        "id": value.entry.id,
        "content": value.entry.content,
        "citations": plain(value.citations),
        "documents": plain(value.documents),
        "amiss": value.amiss,
    }


@plain.register
def _(value: Earlier) -> Any:
    return {
        "id": value.id,
        "version": value.version,
        "content": value.content,
        "said": plain(value.entry.confirmed_at),
        "relation": str(value.relation),
        "note": value.note,
        "source": value.entry.source,
        "unverified": value.entry.unverified,
    }


@plain.register
def _(value: Recall) -> Any:
    return {
        "query": value.query,
        "asked": value.asked,
        "profile": value.profile,
        "hits": [plain(hit) | {"excerpt": _excerpt(value, hit), "because": value.because(hit)} for hit in value.hits],
        "confidence": value.confidence,
        "nothing_found": value.nothing_found,
        "notes": plain(value.notes),
        "discoveries": [plain(passage) | {"place": passage.place} for passage in value.discoveries],
    }


@plain.register
def _(value: Gathered) -> Any:
    groups = [
        {
            "title": group.title,
            "since": plain(group.since),
            "until": plain(group.until),
            "hits": [plain(hit) | {"because": value.because(hit)} for hit in group.hits],
        }
        for group in value.groups
    ]
    return _fields(replace(value, groups=())) | {"groups": groups}


def _excerpt(value: Recall, hit: Hit) -> str | None:
    """Return the shown part of a hit that is too long; None for a short one."""
    part = value.excerpt(hit)
    return part.of(hit.content) if part.end - part.start < len(hit.content) else None


@plain.register
def _(value: Written) -> Any:
    return {
        "outcome": value.outcome,
        "id": value.id,
        "reason": value.reason,
        "replaces": list(value.replaces),
        "reopened": list(value.reopened),
        "beside": list(value.beside),
        "entry": plain(value.entry),
        "ledger": plain(value.ledger),
        **({"cites": list(value.cites)} if value.cites else {}),
    }


@plain.register
def _(value: Context) -> Any:
    return {
        "text": str(value),
        "document": plain(value.document),
        "tokens": value.tokens,
        "budget": value.budget,
        "matched": {id: _shared(hit.score.match.contributions) for id, hit in value.hits.items()},
        "evicted": plain(value.evicted),
        "notes": plain(value.notes),
    }


@plain.register
def _(value: WorkspaceInfo) -> Any:
    return {key: item for key, item in _fields(value).items() if key != "spec_toml"}
