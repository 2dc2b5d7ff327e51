"""The memory of the MCP reference server: memory.jsonl, a graph of entities, their observations and relations.

    {"type": "entity", "name": "Ana_Lima", "entityType": "person", "observations": ["Leads the billing team"]}
    {"type": "relation", "from": "Ana_Lima", "to": "Billing", "relationType": "leads"}

Each observation becomes a statement that names its entity, and each relation a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lukasa.model.past import PastStatement
from lukasa.providers.past.bundle import Bundle, malformed, parsed
from lukasa.providers.past.markdown import tag

NAME = "mcp-memory"
TITLE = "the MCP reference server's memory: memory.jsonl"
_TYPES = ("entity", "relation")


def fits(bundle: Bundle) -> bool:
    found = bundle.names if bundle.is_file else bundle.called("memory.jsonl", "memory.json")
    return any(_is_graph(bundle, name) for name in found)


def _is_graph(bundle: Bundle, name: str) -> bool:
    for line in bundle.head(name).splitlines()[:5]:
        try:
            record = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if isinstance(record, dict) and record.get("type") in _TYPES:
            return "entityType" in record or "relationType" in record
    return False


def read(bundle: Bundle) -> Iterator[PastStatement]:
    found = bundle.names if bundle.is_file else bundle.called("memory.jsonl", "memory.json")
    for name in found:
        if _is_graph(bundle, name):
            yield from _graph(bundle, name)


def _graph(bundle: Bundle, name: str) -> Iterator[PastStatement]:
    at, place = bundle.modified(name), bundle.place(name)
    for number, line in enumerate(bundle.read(name).split(b"\n"), 1):
        if not line.strip():
            continue
        record = parsed(line, f"{place}: line {number}")
        kind = record.get("type") if isinstance(record, Mapping) else None
        if kind not in _TYPES:
            raise malformed(f"{place}: line {number}", "it is neither an entity nor a relation")
        for item, text, about in _entity(record) if kind == "entity" else _relation(record):
            if not text:
                raise malformed(f"{place}: line {number}", "a name or an observation is missing or not text")
            tags = (tag(str(about.get("entity_type", ""))),) if about.get("entity_type") else ()
            yield PastStatement(
                NAME, text, place, f"line {number}{item}", at, by=NAME, tags=tuple(filter(None, tags)), about=about
            )


def _entity(record: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    name, kind, observations = record.get("name"), record.get("entityType"), record.get("observations")
    if not isinstance(name, str) or not isinstance(observations, list):
        yield "", "", {}
        return
    about = {"entity": name, **({"entity_type": kind} if isinstance(kind, str) else {})}
    for number, said in enumerate(observations, 1):
        if not isinstance(said, str) or not said.strip():
            yield "", "", {}
            return
        yield f", observation {number}", _named(name, said.strip()), {**about, "observation": said.strip()[:2000]}


def _named(name: str, said: str) -> str:
    """Return an observation as a statement that can stand alone."""
    plain = _plain(name)
    return said if plain.lower() in said.lower() or name.lower() in said.lower() else f"{plain} — {said}"


def _relation(record: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    one, other, kind = record.get("from"), record.get("to"), record.get("relationType")
    if not (isinstance(one, str) and isinstance(other, str) and isinstance(kind, str)):
        yield "", "", {}
        return
    yield "", f"{_plain(one)} {_plain(kind)} {_plain(other)}", {"from": one, "to": other, "relation": kind}


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
