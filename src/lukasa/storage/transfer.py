"""Move the memory of an account from one backend to another: all rows as they are, then both sides compared.

A backend gives out the rows of a part in a fixed order, and takes them in as they are: numbers of entries, hashes,
digests and salts stay. Only what is derived is made again: the index of words, counts of partitions, vector blobs.

Rows are taken in page by page, each page in a transaction of its own, so the rows that a target has say how far a move
had come: whoever resumes it goes on behind them. A target is marked from the first row until both sides are equal, and
nothing else opens it meanwhile. Nobody writes to the origin while it is held; what changed there between two attempts
shows in the heads of its logs, or when the rows are compared, and then the copy begins again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, StoreDamaged
from lukasa.storage import tables
from lukasa.storage.codec import Table, TextTable
from lukasa.storage.port import Finding

Row: TypeAlias = "tuple[Any, ...]"
Tell: TypeAlias = "Callable[[int], None]"  # is told how many rows were copied or compared just now
Watch: TypeAlias = "Callable[[int], Tell]"  # is told how many steps there are, two for each row
Role: TypeAlias = Literal["account", "workspace"]
THE_ACCOUNT = "account"  # the id of the account's own store in a move; those of workspaces have the ids of these
_MANY, _FEW = 500, 20  # rows of a page; few where one may be long


class Part(NamedTuple):
    """The rows of one table, with the columns that move. `order` is unique, and the target keeps that order."""

    name: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    page: int = _MANY


def _part(name: str, columns: str, order: str) -> Part:
    return Part(name, tuple(columns.split()), tuple(order.split()))


def _plain(table: Table[Any], *order: str, page: int = _MANY) -> Part:
    return Part(table.name, tuple(table.columns), order or table.key, page)


SCOPES = _part("scopes", "id tier anchor", "id")
PARTITIONS = _part("partitions", "id scope_id visibility owner", "id")
ENTRIES = _part(
    "entries",
    """rowid id partition_id scope_id owner state kind category source curator lifetime conversation importance
    created_at updated_at confirmed_at valid_at invalid_at superseded_by version content_version term_count chars marks
    tags terms content_hash content_key subject role salt content rest""",
    "rowid",
)
VERSIONS = _part("versions", "entry version action cause actor at snapshot", "entry version")
VECTORS = _part("vectors", "entry model_id partition_id checksum vector", "entry model_id")
ITEM_SPACES = _part("item_spaces", "id path", "id")
ITEMS = _part(
    "items", "space key created_at updated_at expires_at ttl value_hash salt value texts indexer", "rowid"
)._replace(page=_FEW)
ITEM_VECTORS = _part("item_vectors", "space key model_id field checksum vector", "place")
UTTERANCES = _plain(tables.UTTERANCES, "rowid")
PASSAGES = _plain(tables.PASSAGES, "rowid")
PASSAGE_VECTORS = _part("passage_vectors", "document number model_id checksum vector", "place")
TEXTS: Mapping[Part, TextTable[Any]] = {UTTERANCES: tables.UTTERANCES, PASSAGES: tables.PASSAGES}  # found by words
CONVERSATIONS = _plain(tables.CONVERSATIONS, "place")
EVENTS = _plain(tables.EVENTS)
WORKSPACES = _plain(tables.WORKSPACES, "place")
GRANTS = _plain(tables.GRANTS, "place")
NAMED = _plain(tables.NAMED)
PURGED = _plain(tables.PURGED)
DOCUMENTS = _plain(tables.DOCUMENTS, "place", page=_FEW)
WATCHES = _plain(tables.WATCHES, "place")
JOBS = _plain(tables.JOBS, "place")
TELEMETRY = _plain(tables.TELEMETRY, "place")
SPENDING = _plain(tables.SPENDING)
DISCLOSURES = _plain(tables.DISCLOSURES, "place")
ANSWERS = _plain(tables.ANSWERS, page=_FEW)
CHANNELS = _plain(tables.CHANNELS, "place")
NOTES = _plain(tables.NOTES)
SOURCES = _plain(tables.DOCUMENT_SOURCES)
DOCUMENT_VERSIONS = _plain(tables.DOCUMENT_VERSIONS, page=_FEW)
NAMED_VERSIONS = _plain(tables.NAMED_VERSIONS)
RIVALS = _plain(tables.RIVALS, "place")
CONFIRMATIONS = _plain(tables.CONFIRMATIONS, "place")
CITATIONS = _plain(tables.CITATIONS, "place")
CITATION_CHECKS = _plain(tables.CITATION_CHECKS, "place")
ACTIONS = _plain(tables.ACTIONS)
CLOSED_SCOPES = _plain(tables.CLOSED_SCOPES, "place")
TRANSCRIPTS = _plain(tables.TRANSCRIPTS, "place")
AMENDMENTS = _plain(tables.AMENDMENTS, "place")
SUBMISSIONS = _plain(tables.SUBMISSIONS, "place", page=_FEW)
REVISIONS = _plain(tables.REVISIONS, "place", page=_FEW)
SYNC_NOTES = _plain(tables.SYNC_NOTES)
ACCESS = _part("access", "id count at", "id")
MODELS = _part("models", "id name dimensions digest", "id")
RETIRED = _part("retired", "id", "id")
ACTION_LINKS = _part("action_links", "action entry", "place")
REDACTIONS = _part("redactions", "first last scrub", "first")
# In this order: a row comes behind those that it refers to.
PARTS = (
    SCOPES,
    PARTITIONS,
    MODELS,
    ENTRIES,
    VERSIONS,
    VECTORS,
    RETIRED,
    NAMED,
    NAMED_VERSIONS,
    DOCUMENTS,
    DOCUMENT_VERSIONS,
    PASSAGES,
    PASSAGE_VECTORS,
    _plain(tables.UNSPLIT),
    SOURCES,
    WATCHES,
    CHANNELS,
    CONVERSATIONS,
    NOTES,
    ACTIONS,
    ACTION_LINKS,
    WORKSPACES,
    ITEM_SPACES,
    ITEMS,
    ITEM_VECTORS,
    TRANSCRIPTS,
    UTTERANCES,
    AMENDMENTS,
    SUBMISSIONS,
    _plain(tables.SUBMISSION_MEMORIES, "place"),
    JOBS,
    _plain(tables.STEPS, "place", page=_FEW),
    TELEMETRY,
    SPENDING,
    DISCLOSURES,
    GRANTS,
    ANSWERS,
    RIVALS,
    CONFIRMATIONS,
    _plain(tables.CANONICAL_LINKS, "place"),
    _plain(tables.DERIVATIONS, "place"),
    CITATIONS,
    CITATION_CHECKS,
    CLOSED_SCOPES,
    REVISIONS,
    SYNC_NOTES,
    PURGED,
    EVENTS,
    REDACTIONS,
    ACCESS,
)


class Spelling(Struct, frozen=True):
    """How a backend spells statements on parts: its placeholder, the column that says whose a row is, and the tables
    that hold a part in another shape."""

    mark: str
    tenant: str = ""
    sources: Mapping[str, str] = {}

    def counts(self, parts: Sequence[Part]) -> str:
        """Return the numbers of rows of several parts, behind the place of each; bind the tenant for each."""
        counted = (f"SELECT {n}, count(*) FROM {part.name}{self._where()}" for n, part in enumerate(parts))
        return f"{' UNION ALL '.join(counted)} ORDER BY 1"

    def page(self, part: Part, *, behind: bool) -> str:
        """Return rows of a part, each with its order in front; bind the tenant, the order behind which they begin, how
        many, and how many to pass over."""
        names = ", ".join(f"t.{name}" for name in (*part.order, *part.columns))
        order = ", ".join(f"t.{name}" for name in part.order)
        later = f"({order}) > ({', '.join(self.mark for _ in part.order)})" if behind else ""
        source = self.sources.get(part.name, part.name)
        return (
            f"SELECT {names} FROM {source} AS t{self._where(later)} ORDER BY {order}"
            f" LIMIT {self.mark} OFFSET {self.mark}"
        )

    def insert(self, part: Part, *more: str) -> str:
        """Return the statement that adds a row, with more columns behind those of the part."""
        names = [*([self.tenant] if self.tenant else []), *part.columns, *more]
        return f"INSERT INTO {part.name} ({', '.join(names)}) VALUES ({', '.join(self.mark for _ in names)})"

    def _where(self, test: str = "") -> str:
        tests = [*([f"{self.tenant} = {self.mark}"] if self.tenant else []), *([test] if test else [])]
        return f" WHERE {' AND '.join(tests)}" if tests else ""


Page: TypeAlias = "tuple[Part, Sequence[Row]]"


class About(Struct, frozen=True):
    """A store: what it is, the head of its log, and the highest row number that it ever gave to an entry."""

    id: str
    role: Role
    secret: bytes
    tokenizer: int
    created_at: str
    head: tuple[int, str]
    last_entry: int


class Given(Protocol):
    """A store that gives out what it holds."""

    @property
    def about(self) -> About: ...
    def snapshot(self) -> AbstractContextManager[object]:
        """Let the questions inside see one state of the store."""
        ...

    def counts(self) -> list[int]:
        """Return how many rows each of `PARTS` has."""
        ...

    def rows(self, part: Part, *, after: Row = (), skip: int = 0) -> Sequence[Row]:
        """Return a page of rows, each with its order in front of its columns, behind the order `after`."""
        ...

    def digest_of(self, seq: int) -> str | None:
        """Return the digest of an event; None if there is none of that number."""
        ...

    def check(self) -> list[Finding]:
        """Verify the store against itself."""
        ...


class Taking(Given, Protocol):
    """A store that takes in what another gave out."""

    def empty_access(self) -> None:
        """Drop the counts of reads: they change at an origin that only reads."""
        ...

    def take_in(self, pages: Sequence[Page]) -> None:
        """Add rows in one transaction, with the index that belongs to them."""
        ...

    def complete(self, last_entry: int) -> None:
        """Make what is derived from all rows together."""
        ...


Chosen: TypeAlias = "Callable[[Sequence[WorkspaceInfo]], Sequence[WorkspaceInfo]]"


class Mark(Struct, frozen=True):
    """What a half-moved target keeps: whose memory it takes in, and where the logs of that ended."""

    origin: str
    where: str
    heads: dict[str, tuple[int, str]]

    @classmethod
    def of(cls, where: str, stores: Sequence[About]) -> Mark:
        """Return the mark of a move. The first store is the account's; its secret, which moves along, tells whose."""
        origin = hashlib.sha256(b"lukasa move" + stores[0].secret).hexdigest()
        return cls(origin, where, {one.id: one.head for one in stores})

    @classmethod
    def read(cls, text: str) -> Mark:
        return msgspec.json.decode(text, type=cls)

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class Origin(Protocol):
    """An account's memory that is moved."""

    where: str

    def held(self, chosen: Chosen) -> AbstractContextManager[Sequence[Given]]:
        """Give the account's store and those of its workspaces, first the account's. Nobody writes meanwhile."""
        ...

    def remove(self, heads: Mapping[str, tuple[int, str]]) -> None:
        """Remove the memory whose logs end there, and nothing else."""
        ...

    def close(self) -> None: ...


class Target(Protocol):
    """The place that an account's memory moves to."""

    where: str

    def mark(self) -> Mark | None:
        """Return the mark of a move that is not finished; None if there is no memory. Conflict if memory is there."""
        ...

    def holds(self, mark: Mark) -> bool:
        """Return whether the memory that is there came from this origin, with its log whole."""
        ...

    def begin(self, mark: Mark, stores: Sequence[About]) -> None: ...
    def store(self, about: About) -> Taking: ...
    def finish(self) -> None:
        """Take the mark away: from now on the memory can be opened."""
        ...

    def clear(self) -> None:
        """Remove what a move that is not finished has left."""
        ...

    def close(self) -> None: ...


class Moved(Struct, frozen=True):
    """What a move did, or would do: rows by part, over all stores."""

    stores: int
    rows: dict[str, int]
    heads: dict[str, tuple[int, str]]
    resumed: int = 0  # rows that were there already
    restarted: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def outline(stores: Sequence[Given]) -> Moved:
    """Return how much there is to move."""
    sums = [sum(counts) for counts in zip(*(store.counts() for store in stores), strict=True)]
    rows = {part.name: count for part, count in zip(PARTS, sums, strict=True) if count}
    return Moved(len(stores), rows, {store.about.id: store.about.head for store in stores})


def move(stores: Sequence[Given], where: str, target: Target, watch: Watch, also: Callable[[], None]) -> Moved:
    """Copy all stores of an account into a target, compare both sides, and only then let others open the target.

    A target that this move left unfinished earlier is continued, or begun again if the origin has changed since.
    `also` brings over what is not in stores, before the target can be opened.
    """
    abouts = [store.about for store in stores]
    plan, mark = outline(stores), Mark.of(where, abouts)
    tell = watch(2 * plan.total)
    before = target.mark()
    if before is not None and before.origin != mark.origin:
        raise Conflict(
            f"{target.where} holds an unfinished move of other memory, from {before.where}",
            fix="finish that move, or remove what it left with `lukasa move --to … --clear`",
        )
    restarted = before is not None and before.heads != mark.heads
    if restarted:
        target.clear()
    if before is None or restarted:
        target.begin(mark, abouts)
    pairs = [(store, target.store(about)) for store, about in zip(stores, abouts, strict=True)]
    resumed = sum(_copy(*pair, tell) for pair in pairs)
    wrong = _first_difference(pairs, tell)
    if wrong and resumed:  # something changed at the origin that its log does not tell of, such as a job's lease
        restarted, resumed = True, 0
        target.clear()
        target.begin(mark, abouts)
        pairs = [(store, target.store(about)) for store, about in zip(stores, abouts, strict=True)]
        for pair in pairs:
            _copy(*pair, tell)
        wrong = _first_difference(pairs, tell)
    if wrong:
        raise StoreDamaged(
            f"{target.where}: {wrong} differ from those of the origin, so the move is not finished",
            fix="the origin is as it was; remove the copy with `lukasa move --to … --clear`, then try again",
        )
    for (_, taken), about in zip(pairs, abouts, strict=True):
        taken.complete(about.last_entry)
    findings = tuple(found for pair in pairs for found in _new_findings(*pair))
    also()
    target.finish()
    return msgspec.structs.replace(plan, resumed=resumed, restarted=restarted, findings=findings)


def _copy(given: Given, taken: Taking, tell: Tell) -> int:
    """Copy the rows of a store that the target does not have yet; return how many it had.

    Pages of small tables are taken in together, so that a small workspace needs few transactions.
    """
    taken.empty_access()
    had, waiting = taken.counts(), list[Page]()
    tell(sum(had))
    for part, count, done in zip(PARTS, given.counts(), had, strict=True):
        if count > done:
            for page in each_page(given, part, done):
                waiting.append((part, [row[len(part.order) :] for row in page]))
                if sum(len(rows) for _, rows in waiting) >= _MANY or part.page < _MANY:
                    _take_in(taken, waiting, tell)
    _take_in(taken, waiting, tell)
    return sum(had)


def _take_in(taken: Taking, waiting: list[Page], tell: Tell) -> None:
    if waiting:
        taken.take_in(waiting)
        tell(sum(len(rows) for _, rows in waiting))
        waiting.clear()


def _first_difference(pairs: Sequence[tuple[Given, Taking]], tell: Tell) -> str:
    """Compare every row of both sides, in order; return which rows differ, or nothing."""
    for given, taken in pairs:
        with taken.snapshot():
            for part, *counts in zip(PARTS, given.counts(), taken.counts(), strict=True):
                if any(counts):
                    for one, other in zip_longest(each_row(given, part), each_row(taken, part)):
                        if one != other:
                            return f"the rows of {part.name}"
                    tell(counts[0])
    return ""


def each_page(side: Given, part: Part, skip: int = 0) -> Iterator[Sequence[Row]]:
    page = side.rows(part, skip=skip)
    while page:
        yield page
        page = side.rows(part, after=page[-1][: len(part.order)]) if len(page) == part.page else ()


def each_row(side: Given, part: Part) -> Iterator[Row]:
    for page in each_page(side, part):
        for row in page:
            yield row[len(part.order) :]


def _new_findings(given: Given, taken: Taking) -> list[Finding]:
    """Check the copy; refuse it for faults that the origin does not have, and return those that came along."""
    found = taken.check()
    if not found:
        return []
    known = {(one.what, "" if one.derived else one.subject) for one in given.check()}
    if new := [one for one in found if (one.what, "" if one.derived else one.subject) not in known]:
        raise StoreDamaged(
            f"the copy is not sound: {new[0].what} {new[0].subject}: {new[0].detail}",
            fix="the origin is as it was; remove the copy with `lukasa move --to … --clear`, then try again",
        )
    return found


def moved_before(stores: Sequence[Given], where: str, target: Target) -> Moved | None:
    """Return what an earlier move did, if the target holds this memory with the whole of its logs; otherwise None."""
    mark = Mark.of(where, [store.about for store in stores])
    return outline(stores) if target.holds(mark) else None


class Ground(Protocol):
    """A place where one store can be made beside others, for a store that comes in whole."""

    def begin(self, about: About) -> Taking:
        """Make the store, or open what an attempt has left of it. Conflict if another one is in its place."""
        ...

    def left(self, about: About) -> bool:
        """Return whether an attempt that did not end has left something of the store."""
        ...

    def clear(self, about: About) -> None:
        """Remove what an attempt has left."""
        ...

    def finish(self, about: About) -> None:
        """Let others open the store."""
        ...


def settle(given: Given, ground: Ground, tell: Tell) -> int:
    """Copy one store as it is, compare both sides, and check the copy; return how many rows were there already."""
    had, faults = _settled(given, ground, tell)
    if faults:
        ground.clear(given.about)
        raise StoreDamaged(
            f"the file does not hold a sound store: {faults[0].what} {faults[0].subject}: {faults[0].detail}",
            fix="nothing was brought in",
        )
    ground.finish(given.about)
    return had


def rehearse(given: Given, ground: Ground, tell: Tell) -> tuple[Finding, ...]:
    """Copy one store into a place of trial, compare rows and the heads of the logs; return what a check finds."""
    _, faults = _settled(given, ground, tell)
    taken = ground.begin(given.about)
    if taken.about.head != given.about.head:
        raise StoreDamaged(
            f"store {given.about.id} ends at event {taken.about.head[0]}, and should at {given.about.head[0]}",
            fix="make another backup",
        )
    ground.finish(given.about)
    return tuple(faults)


def _settled(given: Given, ground: Ground, tell: Tell) -> tuple[int, list[Finding]]:
    """Copy one store; return how many rows were there already, and what a check of the copy finds."""
    about = given.about
    taken = ground.begin(about)
    try:
        had = _copy(given, taken, tell)
    except Conflict as error:  # two rows claim one place
        ground.clear(about)
        raise StoreDamaged(f"the file does not hold a sound store: {error}", fix="nothing was brought in") from error
    wrong = _first_difference([(given, taken)], tell)
    if wrong and had:  # an attempt with another file
        ground.clear(about)
        taken, had = ground.begin(about), 0
        _copy(given, taken, tell)
        wrong = _first_difference([(given, taken)], tell)
    taken.complete(about.last_entry)
    if wrong:
        ground.clear(about)
        raise StoreDamaged(
            f"the file does not hold a sound store: {wrong} cannot be stored as they are", fix="nothing was brought in"
        )
    return had, taken.check()


def conversations(store: Given) -> list[str]:
    """Return the ids of a store's conversations."""
    return [row[0] for row in each_row(store, CONVERSATIONS)]
