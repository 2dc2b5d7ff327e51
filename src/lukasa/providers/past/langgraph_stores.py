"""LangGraph's SqliteStore: a file with a table `store` of namespaces, keys and JSON values."""

from __future__ import annotations

from collections.abc import Iterator

from lukasa.model.past import PastStatement, moment_of, words_of
from lukasa.providers.past import databases
from lukasa.providers.past.bundle import Bundle, parsed

NAME = "langgraph"
TITLE = "LangGraph's SqliteStore: its SQLite file"
_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at")


def _stores(bundle: Bundle) -> list[str]:
    if bundle.is_archive:
        return []
    names = bundle.names if bundle.is_file else bundle.ending(".db", ".sqlite", ".sqlite3")
    return [
        name for name in names if bundle.head(name, 16).startswith(databases.MAGIC) and _is_store(bundle.file(name))
    ]


def _is_store(path: str) -> bool:
    return {"prefix", "key", "value"} <= set(databases.columns(path, "store"))


def fits(bundle: Bundle) -> bool:
    return bool(_stores(bundle))


def read(bundle: Bundle) -> Iterator[PastStatement]:
    for name in _stores(bundle):
        path = bundle.place(name)
        for row in databases.rows(bundle.file(name), "store", _COLUMNS):
            namespace, key = str(row["prefix"]), str(row["key"])
            item = f"{namespace}/{key}"
            raw = row["value"]
            data = raw if isinstance(raw, bytes) else str(raw).encode()
            said = words_of(parsed(data, f"{path}: item {item}"))
            if said:
                at = moment_of(row["updated_at"]) or moment_of(row["created_at"])
                about = {"namespace": namespace, "key": key}
                yield PastStatement(NAME, said, path, f"item {item}", at, key=item, by=NAME, about=about)
