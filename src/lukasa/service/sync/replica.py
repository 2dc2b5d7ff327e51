"""A replica: the memory of this machine as one of several that hold the same revisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.sync import Revision
from lukasa.model.values import Trust
from lukasa.service.call import CallContext
from lukasa.storage.port import Store


class Member(Struct, frozen=True):
    """Whose machine revisions come from, as this machine sees it.

    `own` says that it is another machine of the same person. Of others, `trust` is the most that a statement keeps, and
    preferences and procedures are held until somebody accepts them here.
    """

    name: str
    trust: Trust = Trust.AUTHOR
    own: bool = True


class Absorbed(Struct):
    """What a set of revisions changed here.

    `changes` counts things by kind and by what became of them: new, changed, removed, rival. `known` revisions were
    here already, `waiting` ones lack a parent that has not come yet, and `held` entries wait for a person in the inbox.
    """

    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    known: int = 0
    waiting: int = 0
    held: int = 0
    joined: dict[str, str] = field(default_factory=dict)  # workspaces that became part of another one


class Rooms(Struct, frozen=True):
    """The stores of an account: `context` opens a workspace that is registered, `bare` its store without furniture."""

    account: Store
    infos: Callable[[], list[WorkspaceInfo]]
    context: Callable[[WorkspaceInfo], CallContext]
    bare: Callable[[WorkspaceInfo], Store]


class Replica:
    """The memory of this machine. `machine` is the name that its own revisions carry."""

    def __init__(self, rooms: Rooms, machine: str) -> None:
        self._rooms, self._machine = rooms, machine

    def collect(self) -> list[Revision]:
        """Return the revisions that were made here and did not go out yet, after noting what changed since."""
        raise NotImplementedError

    def told(self, digests: Iterable[str]) -> None:
        """Note that these revisions are in a bundle of this machine. Telling twice does no harm."""
        raise NotImplementedError

    def absorb(self, revisions: Iterable[Revision], member: Member) -> Absorbed:
        """Take in what another machine made. Revisions that are known are passed over; some may have to wait."""
        raise NotImplementedError

    def erased(self) -> frozenset[str]:
        """Return the digests of the revisions whose words were erased, also of ones that have not come yet."""
        raise NotImplementedError

    def digests(self) -> Mapping[str, str]:
        """Return a digest of each store, by workspace and empty for the account: equal where replicas are equal."""
        raise NotImplementedError
