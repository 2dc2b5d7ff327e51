"""Entries already decoded: most of the cost of a read is turning rows into values, and values never change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lukasa.model.entry import Entry

LIMIT = 16384


class EntryCache:
    """Entries by id, each good for exactly its version; the database is asked for the version before every use.

    Only single dict operations, each atomic, so threads need no lock: at worst an entry is decoded twice.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def known(self, stamps: Mapping[str, tuple[int, int]]) -> dict[str, Entry]:
        """Those that are here, of ids with their version and row."""
        found = {}
        for id, (version, _) in stamps.items():
            entry = self._entries.get(id)
            if entry is not None and entry.version == version:
                found[id] = entry
        return found

    def learn(self, entries: Iterable[Entry]) -> None:
        if len(self._entries) >= LIMIT:
            self._entries = dict(list(self._entries.items())[LIMIT // 2 :])  # the older half gives way
        # Metadata is a dict that a caller could change; such entries are decoded anew each time.
        self._entries.update((entry.id, entry) for entry in entries if not entry.metadata)

    def clear(self) -> None:
        self._entries = {}
