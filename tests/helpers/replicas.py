"""Several machines with one memory, in this process: each collects what it changed, and absorbs what others told."""

from __future__ import annotations

from collections.abc import Iterable

from lukasa import Lukasa
from lukasa.model.conversation import WorkspaceInfo
from lukasa.model.sync import Revision
from lukasa.service.sync import reading
from lukasa.service.sync.absorbing import Absorbed, Member
from lukasa.service.sync.replica import Replica, Rooms
from lukasa.service.workspace import Workspace
from lukasa.storage.port import Store
from lukasa.write.things import KINDS, View
from tests.helpers.making import FixedClock

OWN = Member("me")


class Machine:
    """One machine: its memory, its replica, and what it has told so far."""

    def __init__(self, name: str, memory: Lukasa, clock: FixedClock) -> None:
        self.name, self.memory, self.clock = name, memory, clock
        self.replica = Replica(
            Rooms(memory.account, memory.account.workspaces, memory._open_context, self._bare, clock), name
        )
        self.log: list[Revision] = []
        self.read: dict[str, int] = {}

    def _bare(self, info: WorkspaceInfo) -> Store:
        stores = self.memory._stores
        if info.id not in stores:
            stores[info.id] = self.memory._open_workspace(info, self.memory._spec_of(info))
        return stores[info.id]

    def tell(self) -> list[Revision]:
        """Put what changed here into the log that others read."""
        new = self.replica.collect()
        self.log += new
        self.replica.told(one.digest for one in new)
        return new

    def take(self, given: Iterable[Revision], member: Member = OWN) -> Absorbed:
        return self.replica.absorb(given, member)

    def workspace(self, name: str = "notes") -> Workspace:
        return self.memory.workspace(name)


def exchange(*machines: Machine, rounds: int = 6) -> None:
    """Let every machine tell and take everything, until nobody has anything new to tell."""
    for _ in range(rounds):
        told = sum(len(machine.tell()) for machine in machines)
        for machine in machines:
            for other in machines:
                if other is not machine:
                    machine.take(other.log[machine.read.get(other.name, 0) :])
                    machine.read[other.name] = len(other.log)
        if not told:
            return
    raise AssertionError("the machines still tell each other something new")


def shown(machine: Machine) -> dict[tuple[str, str, str], View]:
    """Return everything that a machine's memory holds, by store, kind and place."""
    stores = {"": machine.memory.account}
    stores |= {info.id: machine._bare(info) for info in machine.memory.workspaces()}
    return {
        (id, kind, spot): view
        for id, store in stores.items()
        for kind in KINDS
        for spot, view in reading.read(store, kind, None).items()
    }
