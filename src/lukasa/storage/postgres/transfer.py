"""Move memory out of a PostgreSQL database, and into one: `storage.transfer` says what moves, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import psycopg

from lukasa.index.cache import ReadCache
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, StoreError, StoreMissing, StoreUnfinished
from lukasa.model.item import beginnings, namespace_of
from lukasa.storage import tables, transfer
from lukasa.storage.entry_codec import scope_of
from lukasa.storage.port import Finding
from lukasa.storage.postgres import integrity, sql
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.entries import tenant_keys
from lukasa.storage.postgres.execute import Handle, Head, PgVector, Session, translated, vector_bytes
from lukasa.storage.postgres.postgres_rows import PostgresRows
from lukasa.storage.transfer import (
    PARTS,
    THE_ACCOUNT,
    About,
    Chosen,
    Given,
    Mark,
    Page,
    Part,
    Row,
    Spelling,
    Taking,
)

_SPELLING = Spelling(
    "%s",
    tenant="store",
    sources={
        "vectors": "(SELECT store, entry, model_id, partition_id, checksum, embedding AS vector FROM vectors)",
        "item_vectors": "(SELECT v.store, v.place, v.space, i.key, v.model_id, v.field, v.checksum,"
        " v.embedding AS vector FROM item_vectors AS v JOIN items AS i ON i.store = v.store AND i.rowid = v.item)",
        "passage_vectors": "(SELECT v.store, v.place, p.document, p.number, v.model_id, v.checksum,"
        " v.embedding AS vector FROM passage_vectors AS v JOIN passages AS p"
        " ON p.store = v.store AND p.rowid = v.passage)",
    },
)
_VECTORS = (transfer.VECTORS, transfer.ITEM_VECTORS, transfer.PASSAGE_VECTORS)  # their vector is the last column
_MORE = {
    transfer.SCOPES.name: ("keys",),
    transfer.PARTITIONS.name: ("keys",),
    transfer.ENTRIES.name: ("trust", "merged_count", "keys"),
    transfer.VERSIONS.name: ("keys",),
}
_INSERTS = {part.name: _SPELLING.insert(part, *_MORE.get(part.name, ())) for part in transfer.PARTS} | {
    transfer.VECTORS.name: sql.TAKE_VECTOR,
    transfer.ITEMS.name: sql.TAKE_ITEM,
    transfer.ITEM_VECTORS.name: sql.TAKE_ITEM_VECTOR,
    transfer.PASSAGE_VECTORS.name: sql.TAKE_PASSAGE_VECTOR,
}
_SCOPE, _REST = (transfer.ENTRIES.columns.index(name) for name in ("scope_id", "rest"))
_SEQ, _DIGEST = (tables.EVENTS.positions[name] for name in ("seq", "digest"))
_REMOVED = Mark("removed", "", {})


class PostgresPages:
    """One store of a database, as a move reads and fills it."""

    def __init__(
        self, database: Database, id: str, store: str, ask: Callable[[], AbstractContextManager[Handle]]
    ) -> None:
        self._database, self._id, self._store, self._ask = database, id, store, ask

    @property
    def about(self) -> About:
        with self._ask() as db:
            ((role, secret, tokenizer, created_at, seq, digest, last),) = db.all(sql.ORIGIN)
        return About(self._id, role, bytes(secret), tokenizer, created_at, (seq, digest), last)

    def workspaces(self) -> list[WorkspaceInfo]:
        with self._ask() as db:
            return PostgresRows(db, {}).select(tables.ALL_WORKSPACES)

    def snapshot(self) -> AbstractContextManager[object]:
        return self._ask()

    def counts(self) -> list[int]:
        with self._ask() as db:
            return [count for _, count in db.all(_SPELLING.counts(PARTS), *[self._store] * (len(PARTS) - 1))]

    def rows(self, part: Part, *, after: Row = (), skip: int = 0) -> Sequence[Row]:
        with self._ask() as db:
            found = db.all(_SPELLING.page(part, behind=bool(after)), *after, part.page, skip)
        return [(*row[:-1], vector_bytes(row[-1])) for row in found] if part in _VECTORS else found

    def digest_of(self, seq: int) -> str | None:
        with self._ask() as db:
            found: str | None = db.value(sql.DIGEST_OF, seq)
            return found

    def check(self) -> list[Finding]:
        with self._ask() as db:
            return integrity.check(db, self.about.secret)

    # Taking in

    def _change(self, change: Callable[[PostgresRows], object]) -> None:
        def attempt() -> None:
            with self._database.writing(self._store) as db:
                rows = PostgresRows(db, {})
                change(rows)
                rows.write_head()

        self._database.persistent(attempt)

    def empty_access(self) -> None:
        self._change(lambda rows: rows.db.run(sql.EMPTY_ACCESS))

    def take_in(self, pages: Sequence[Page]) -> None:
        def change(writer: PostgresRows) -> None:
            for part, rows in pages:
                _add(writer, part, rows)

        self._change(change)

    def complete(self, last_entry: int) -> None:
        def change(rows: PostgresRows) -> None:
            rows.last = rows.fed = max(rows.last, last_entry)
            rows.db.run(sql.RECOUNT)

        self._change(change)


def _add(writer: PostgresRows, part: Part, rows: Sequence[Row]) -> None:
    """Insert rows of a part, and index what is found by its words."""
    if part in transfer.TEXTS:
        table = transfer.TEXTS[part]
        writer.add_texts(table, [table.decode(tuple(row)) for row in rows])
        return
    writer.db.run_many(_INSERTS[part.name], _completed(writer.db, part, rows))
    if part is transfer.ENTRIES:
        writer.last = rows[-1][0]
        writer.index_pending()
    elif part is transfer.ITEM_SPACES:
        for id, path in rows:
            writer.db.run(sql.NEW_PREFIXES, beginnings(namespace_of(path)), id)
    elif part is transfer.EVENTS:
        writer.headed = rows[-1][_SEQ], rows[-1][_DIGEST]


def _completed(db: Handle, part: Part, rows: Sequence[Row]) -> Sequence[Row]:
    """Add the columns that this backend keeps beside those that move."""
    keys: dict[int, str] = {}
    if part in (transfer.PARTITIONS, transfer.ENTRIES):
        place = part.columns.index("scope_id")
        keys = dict(db.all(sql.KEYS_OF_SCOPES, [row[place] for row in rows]))
    elif part is transfer.VERSIONS:
        keys = dict(db.all(sql.KEYS_OF_ROWS, [row[0] for row in rows]))
    if part is transfer.SCOPES:
        return [(*row, tenant_keys(scope_of(row[1], row[2]))) for row in rows]
    if part is transfer.PARTITIONS:
        return [(*row, keys[row[1]]) for row in rows]
    if part is transfer.ENTRIES:
        return [(*row, *_weighed(row[_REST]), keys[row[_SCOPE]]) for row in rows]
    if part is transfer.VERSIONS:
        return [(*row, keys[row[0]]) for row in rows]
    if part is transfer.VECTORS:
        return [(*row[:-1], PgVector(row[-1])) for row in rows]
    if part is transfer.PASSAGE_VECTORS:
        return [(model, checksum, PgVector(vector), *passage) for *passage, model, checksum, vector in rows]
    if part is transfer.ITEM_VECTORS:
        return [(*row[2:-1], PgVector(row[-1]), *row[:2]) for row in rows]
    return rows


def _weighed(rest: str) -> tuple[int, int]:
    """The trust and the number of statements of an entry, which are columns of their own here."""
    held = json.loads(rest)
    return held["trust"], held.get("merged_count", 1)


class DatabaseMemory:
    """Implements `lukasa.storage.transfer.Origin` and `Target` for an account of a database."""

    def __init__(self, database: Database, account: str, name: str) -> None:
        self._database, self._account = database, account
        self.where = f"{database.where}, account {name}"

    def _store(self, id: str) -> str:
        return self._account if id == THE_ACCOUNT else id

    def pages(self, id: str) -> PostgresPages:
        """Return a store as an export reads it: in the snapshot that is open in this thread, if one is."""
        store = self._store(id)
        return PostgresPages(self._database, id, store, lambda: self._database.reading(store))

    # Origin

    @contextmanager
    def held(self, chosen: Chosen) -> Iterator[Sequence[Given]]:
        mark = self._database.mark_of(self._account)
        if mark:
            raise StoreUnfinished(self.where)
        if mark is None:
            raise StoreMissing(f"{self.where}: there is no such account", fix="check the URL and the account's name")
        with self._database.holding(self._account) as (session, head):
            account = self._held(session, THE_ACCOUNT, head)
            infos = [
                info
                for info in chosen(account.workspaces())
                if info.ready or self._database.mark_of(info.id) is not None
            ]
            with translated(self._database.where):
                heads = {info.id: session.enter(info.id, "", lock=True) for info in infos}
            yield [account, *(self._held(session, id, head) for id, head in heads.items())]

    def _held(self, session: Session, id: str, head: Head | None) -> PostgresPages:
        store = self._store(id)
        if head is None:
            raise self._database.missing(store)
        handle = Handle(session, store, "", head, ReadCache())
        return PostgresPages(self._database, id, store, lambda: nullcontext(handle))

    def remove(self, heads: Mapping[str, tuple[int, str]]) -> None:
        """Remove all stores in one transaction. It needs the rights of the schema's owner: a log is never shortened
        by an application."""
        expected = {self._store(id): head for id, head in heads.items()}
        with self._database.administering() as db:
            indexes = [name for store in expected for name in self._vector_indexes(store)]
            try:
                with db.transaction():
                    db.execute("SET LOCAL search_path = lukasa")
                    for store, head in expected.items():
                        db.execute(sql.BIND, (store, ""))
                        self._require_head(db, store, head)
                        db.execute(sql.SET_MOVING, (_REMOVED.text(), store))
                        db.execute(sql.CLEAR_STORE, (store,))
                    db.execute(sql.DROP_ACCOUNT, (self._account,))
            except (psycopg.errors.InsufficientPrivilege, psycopg.errors.RestrictViolation) as error:
                raise StoreError(
                    f"{self.where}: the user may not remove an account: {error.diag.message_primary}",
                    fix="give the URL of the user who owns the schema; nothing was removed",
                ) from error
            for name in indexes:
                db.execute(f'DROP INDEX IF EXISTS lukasa."{name}"'.encode())

    def remove_store(self, id: str) -> None:
        """Remove the store of one workspace, with its indexes of vectors; nothing if there is none."""
        if self._database.mark_of(id) is None:
            return
        indexes = self._vector_indexes(id)
        with self._database.administering() as db:
            try:
                with db.transaction():
                    db.execute("SET LOCAL search_path = lukasa")
                    db.execute(sql.BIND, (id, ""))
                    db.execute(sql.SET_MOVING, (_REMOVED.text(), id))
                    db.execute(sql.CLEAR_STORE, (id,))
            except (psycopg.errors.InsufficientPrivilege, psycopg.errors.RestrictViolation) as error:
                raise StoreError(
                    f"{self.where}: the user may not remove a workspace: {error.diag.message_primary}",
                    fix="give the URL of the user who owns the schema; nothing was removed",
                ) from error
            for name in indexes:
                db.execute(f'DROP INDEX IF EXISTS lukasa."{name}"'.encode())

    def _require_head(self, db: psycopg.Connection[Any], store: str, expected: tuple[int, str]) -> None:
        found = db.execute(sql.LOCK_HEAD, (store,)).fetchone()
        if found is None or tuple(found) != expected:
            raise Conflict(f"{self.where}: somebody wrote there meanwhile", fix="nothing was removed; move again")

    def _vector_indexes(self, store: str) -> list[str]:
        if self._database.mark_of(store) is None:
            return []
        with self._database.reading(store) as db:
            return [name for (name,) in db.all(sql.VECTOR_INDEXES)]

    # Target

    def mark(self) -> Mark | None:
        found = self._database.mark_of(self._account)
        if found:
            return Mark.read(found)
        if found == "" and self.pages(THE_ACCOUNT).about.head[0]:
            raise Conflict(f"{self.where} holds memory already", fix="choose another account with --to-account")
        return None

    def holds(self, mark: Mark) -> bool:
        for id, (seq, digest) in mark.heads.items():
            if self._database.mark_of(self._store(id)) is None:
                return False
            if seq and self.pages(id).digest_of(seq) != digest:
                return False
        return Mark.of("", [self.pages(THE_ACCOUNT).about]).origin == mark.origin

    def begin(self, mark: Mark, stores: Sequence[About]) -> None:
        """Make all stores in one transaction, each with the mark."""
        for about in stores:
            if about.id != THE_ACCOUNT and self._database.mark_of(about.id) is not None:
                raise Conflict(
                    f"{self.where}: this database holds workspace {about.id} already, in another account",
                    fix="choose another database, or remove the other copy",
                )
        if self._database.mark_of(self._account) is not None:
            self._database.clear([self._account])
        rows = [
            (self._store(a.id), self._account, a.role, a.secret, a.tokenizer, a.created_at, mark.text()) for a in stores
        ]
        self._database.begin_move(rows)

    def store(self, about: About) -> PostgresPages:
        return self.pages(about.id)

    def finish(self) -> None:
        self._database.finish_move(self._marked())

    def clear(self) -> None:
        if not self._database.mark_of(self._account):
            raise StoreError(f"{self.where} holds no unfinished move", fix="nothing was removed")
        self._database.clear(self._marked())

    def _marked(self) -> list[str]:
        mark = Mark.read(self._database.mark_of(self._account) or _REMOVED.text())
        return [self._store(id) for id in mark.heads]

    def close(self) -> None:
        self._database.close()


class DatabaseGround:
    """Implements `lukasa.storage.transfer.Ground` for workspaces of an account of a database."""

    def __init__(self, database: Database, account: str) -> None:
        self._database, self._account = database, account

    def begin(self, about: About) -> Taking:
        mark = self._database.mark_of(about.id)
        if mark == "":
            raise Conflict(
                f"{self._database.where} holds workspace {about.id} already, in another account",
                fix="merge it into a workspace of yours by its name",
            )
        text = Mark.of("", [about]).text()
        if mark is not None and Mark.read(mark).origin != Mark.read(text).origin:
            self._database.clear([about.id])
            mark = None
        if mark is None:
            named = about.secret, about.tokenizer, about.created_at, text
            self._database.begin_move([(about.id, self._account, about.role, *named)])
        return PostgresPages(self._database, about.id, about.id, lambda: self._database.reading(about.id))

    def left(self, about: About) -> bool:
        return bool(self._database.mark_of(about.id))

    def clear(self, about: About) -> None:
        self._database.clear([about.id])

    def finish(self, about: About) -> None:
        self._database.finish_move([about.id])
