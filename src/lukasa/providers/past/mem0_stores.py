"""mem0: its JSON export, and the stores that it keeps on this machine.

    JSON            {"results": [{"id", "memory", "created_at", "updated_at", "user_id", "metadata"}]}, or the list
    Qdrant          a folder with collection/<name>/storage.sqlite, where each point is a pickle with a payload
    Chroma          chroma.sqlite3, where a payload is rows of embedding_metadata
    history         history.db: what happened to each memory; the last event of each says what it is now

mem0's words are those of the model that extracted them. A payload has the text in `data`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lukasa.model.past import PastStatement, moment_of, words_of
from lukasa.providers.past import databases, pickled
from lukasa.providers.past.bundle import Bundle, malformed
from lukasa.providers.transcripts.recording_builder import label

NAME = "mem0"
TITLE = "mem0: its JSON export, a local Qdrant or Chroma folder, or history.db"
_POINTS = "storage.sqlite"
_CHROMA = "chroma.sqlite3"
_MEMORY = re.compile(rb'"memory"\s*:\s*"')
_WRAPPED = re.compile(rb'\{\s*"(?:results|memories|data|count|next|previous|relations)"')
_OWN = ("mem0migrations",)  # a collection about the user of mem0, not about what they said
_ABOUT = ("user_id", "agent_id", "run_id", "actor_id", "app_id")


def fits(bundle: Bundle) -> bool:
    if bundle.is_archive:
        return False
    if bundle.is_folder:
        return bool(_collections(bundle) or bundle.called(_CHROMA) or _history(bundle))
    name = bundle.names[0]
    head = bundle.head(name)
    if head.startswith(databases.MAGIC):
        return bool(_is_chroma(bundle.path) or _is_history(bundle.path) or _is_points(bundle.path))
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return (start[:1] == b"[" or _WRAPPED.match(start) is not None) and _MEMORY.search(head) is not None


def _collections(bundle: Bundle) -> list[str]:
    found = (name for name in bundle.called(_POINTS) if name.split("/")[-2:-1] and "collection" in name.split("/"))
    return [name for name in found if not name.split("/")[-2].startswith(_OWN)]


def _history(bundle: Bundle) -> list[str]:
    return [name for name in bundle.called("history.db") if _is_history(bundle.file(name))]


def _is_points(path: str) -> bool:
    return databases.columns(path, "points") == ["id", "point"]


def _is_chroma(path: str) -> bool:
    return {"id", "key", "string_value"} <= set(databases.columns(path, "embedding_metadata"))


def _is_history(path: str) -> bool:
    found = set(databases.columns(path, "history"))
    return {"memory_id", "event"} <= found and bool(found & {"new_memory", "new_value"})


def read(bundle: Bundle) -> Iterator[PastStatement]:
    if bundle.is_file:
        name = bundle.names[0]
        if not bundle.head(name).startswith(databases.MAGIC):
            yield from _exported(bundle, name)
        elif _is_points(bundle.path):
            yield from _points(bundle.path, os.path.basename(os.path.dirname(bundle.path)), bundle.shown)
        elif _is_chroma(bundle.path):
            yield from _chroma(bundle.path, bundle.shown)
        else:
            yield from _told(bundle.path, bundle.shown)
        return
    stores = 0
    for name in _collections(bundle):
        stores += 1
        yield from _points(bundle.file(name), name.split("/")[-2], bundle.place(name))
    for name in bundle.called(_CHROMA):
        stores += 1
        yield from _chroma(bundle.file(name), bundle.place(name))
    if not stores:  # a history beside a store tells the same again
        for name in _history(bundle):
            yield from _told(bundle.file(name), bundle.place(name))


def _exported(bundle: Bundle, name: str) -> Iterator[PastStatement]:
    data, place = bundle.json(name), bundle.place(name)
    if isinstance(data, Mapping):
        data = next((data[key] for key in ("results", "memories", "data") if isinstance(data.get(key), list)), None)
    if not isinstance(data, list):
        raise malformed(place, "it has no list of memories, as `results`")
    for number, one in enumerate(data, 1):
        if not isinstance(one, Mapping) or not isinstance(one.get("memory"), str):
            raise malformed(f"{place}: memory {number}", "it has no text `memory`")
        yield from _statement(place, label(one, "id") or str(number), one, one["memory"])


def _statement(place: str, id: str, about: Mapping[str, Any], text: object) -> Iterator[PastStatement]:
    said = words_of(text)
    if not said:
        return
    given = about.get("metadata")
    more = {key: value for key, value in given.items() if isinstance(value, str | int | float)} if isinstance(
        given, Mapping
    ) else {}  # fmt: skip
    named = {key: str(about[key]) for key in _ABOUT if isinstance(about.get(key), str)}
    labels = about.get("categories")
    tags = tuple(str(one)[:60] for one in labels if isinstance(one, str)) if isinstance(labels, list) else ()
    at = moment_of(about.get("updated_at")) or moment_of(about.get("created_at"))
    yield PastStatement(
        NAME,
        said,
        place,
        f"memory {id}",
        at,
        key=id,
        by=NAME,
        tags=tags,
        about={**dict(list(more.items())[:20]), **named},
    )


def _points(path: str, collection: str, place: str) -> Iterator[PastStatement]:
    for number, row in enumerate(databases.rows(path, "points", ("id", "point"), "id"), 1):
        point = row["point"]
        found = pickled.fields(point) if isinstance(point, bytes) else {}
        payload = found.get("payload")
        if not found:
            raise malformed(f"{place}: point {number}", "it is not a point of Qdrant's local store")
        if isinstance(payload, Mapping):
            text = payload.get("data") or payload.get("memory") or payload.get("text")
            yield from _statement(f"{place} › {collection}", str(found.get("id") or number), payload, text)


def _chroma(path: str, place: str) -> Iterator[PastStatement]:
    """Yield the memories of a Chroma store: the payload of each embedding is in rows of its own."""
    names: dict[Any, str] = {}
    if databases.columns(path, "embeddings"):
        names = {
            row["id"]: str(row["embedding_id"]) for row in databases.rows(path, "embeddings", ("id", "embedding_id"))
        }
    payloads: dict[Any, dict[str, Any]] = {}
    for row in databases.rows(
        path, "embedding_metadata", ("id", "key", "string_value", "int_value", "float_value"), "id"
    ):
        value = next((row[k] for k in ("string_value", "int_value", "float_value") if row[k] is not None), None)
        payloads.setdefault(row["id"], {})[str(row["key"])] = value
    for id, payload in payloads.items():
        text = payload.get("data") or payload.get("memory") or payload.get("chroma:document")
        yield from _statement(place, names.get(id, str(id)), payload, text)


def _told(path: str, place: str) -> Iterator[PastStatement]:
    """Yield the memories that a history ends with."""
    wanted = ("memory_id", "event", "new_memory", "new_value", "created_at", "updated_at", "is_deleted", "actor_id")
    last: dict[str, dict[str, Any]] = {}
    for row in databases.rows(path, "history", wanted):
        last[str(row["memory_id"])] = row
    for id, row in last.items():
        if str(row["event"]).upper() != "DELETE" and not row["is_deleted"]:
            yield from _statement(place, id, row, row["new_memory"] or row["new_value"])
