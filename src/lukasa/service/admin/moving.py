"""Move the memory of an account to another place: its stores, and what belongs to them outside of stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.errors import Conflict, InvalidInput, Refused
from lukasa.ports import Threads
from lukasa.spec.load import parse_spec, up_to_date
from lukasa.storage import transfer
from lukasa.storage.transfer import Given, Moved, Origin, Target, Watch

ThreadsOf = Callable[[str], Threads]  # of a workspace, by its id


class Moving:
    """A move from one place to another. Both are closed at the end.

    Files of workspaces are copied by `copy_files`, if the target needs a copy, and the states of chats by
    `copy_threads`, both before the target can be opened.
    """

    def __init__(
        self,
        origin: Origin,
        target: Target,
        *,
        to_folder: bool,
        require_unused: Callable[[], None],
        copy_files: Callable[[], None] | None,
        copy_threads: Callable[[Threads, Threads, Iterable[str]], int],
        threads_here: ThreadsOf,
        threads_there: ThreadsOf,
    ) -> None:
        self.origin, self.target = origin, target
        self.copies_files = copy_files is not None
        self.threads = 0  # chats whose states were copied
        self._to_folder, self._copy_files, self._copy_threads = to_folder, copy_files, copy_threads
        self._require_unused = require_unused  # raises if a process has the origin open
        self._here, self._there = threads_here, threads_there

    def __enter__(self) -> Moving:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.origin.close()
        self.target.close()

    def plan(self) -> Moved:
        """Return how much there is to move; refuse a target that cannot take it."""
        self._require_two_places()
        with self.origin.held(self._chosen) as stores:
            self.target.mark()
            return transfer.outline(stores)

    def run(self, watch: Watch, *, again: bool = False) -> Moved:
        """Move, or go on with a move that was interrupted. With `again`, a move that is done is no error.

        `watch` is told how many steps there are, two for each row: it is copied and compared. What it returns is called
        with the number of steps that were just taken.
        """
        self._require_two_places()
        with self.origin.held(self._chosen) as stores:
            try:
                self.target.mark()
            except Conflict:
                done = transfer.moved_before(stores, self.origin.where, self.target)
                if done is None:
                    raise
                if again:
                    return done
                raise Conflict(
                    f"{self.target.where} holds this memory already: it was moved before",
                    fix="use it there; --remove-origin removes it here",
                ) from None
            return transfer.move(stores, self.origin.where, self.target, watch, lambda: self._also(stores))

    def remove_origin(self, done: Moved) -> None:
        """Remove the memory at the origin, with the states of its chats; files that people read stay."""
        with self.origin.held(self._chosen) as stores:
            if transfer.moved_before(stores, self.origin.where, self.target) is None:
                raise Conflict(
                    f"{self.origin.where} was changed after it was moved",
                    fix="nothing was removed; the target lacks what was written here since",
                )
            threads = [(store.about.id, transfer.conversations(store)) for store in stores[1:]]
        self._require_unused()
        self.origin.remove(done.heads)
        for id, conversations in threads:
            chats = self._here(id)
            for conversation in conversations:
                if chats.kept(conversation):
                    chats.purge(conversation)

    def clear(self) -> None:
        """Remove what an unfinished move has left at the target."""
        self.target.clear()

    def _require_two_places(self) -> None:
        if self.origin.where == self.target.where:
            raise InvalidInput(
                f"the memory of {self.origin.where} cannot be moved to itself",
                fix="name the origin with --data or --database, and another place with --to",
            )

    def _chosen(self, infos: Sequence[WorkspaceInfo]) -> Sequence[WorkspaceInfo]:
        """Return the workspaces that have a store; refuse one that the target could not open."""
        kept = {info.id: parse_spec(up_to_date(info.spec_toml)).backend.store for info in infos}
        for info in infos:
            if kept[info.id] == "postgres" and self._to_folder:
                raise Refused(
                    f"the spec of workspace {info.name[:60]!r} keeps it in PostgreSQL, so a data folder cannot hold it",
                    fix="move it to another database; nothing was moved",
                )
        return [info for info in infos if kept[info.id] != "memory"]

    def _also(self, stores: Sequence[Given]) -> None:
        """Copy files and the states of chats."""
        if self._copy_files is not None:
            self._copy_files()
        for store in stores[1:]:
            id = store.about.id
            self.threads += self._copy_threads(self._here(id), self._there(id), transfer.conversations(store))
