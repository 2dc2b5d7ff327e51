"""Machines that sync: a small replica that behaves, and the sync of a folder around it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lukasa.model.sync import Revision, revision_digest
from lukasa.providers.sync import ciphers
from lukasa.providers.sync.sync_files import Parts, SyncFiles
from lukasa.service.sync.replica import Absorbed, Member
from lukasa.service.sync.syncing import Sync
from tests.helpers.making import FixedClock

PASSPHRASE = "five random words are enough"


class Words:
    """Texts that only grow, and may be erased: the smallest memory that several machines can have in common."""

    def __init__(self) -> None:
        self.known: dict[str, Revision] = {}
        self.gone: set[str] = set()
        self.untold: list[str] = []
        self.members: dict[str, Member] = {}
        self.machine = ""

    def say(self, text: str, **more: str) -> Revision:
        at, salt = FixedClock().now(), os.urandom(8).hex()
        body = {"text": text, **more}
        thing = hashlib.sha256(text.encode()).hexdigest()[:32]
        digest = revision_digest("", "text", thing, (), body, at, self.machine, salt)
        made = Revision("", "text", thing, (), body, at, self.machine, salt, digest)
        self.known[digest] = made
        self.untold.append(digest)
        return made

    def erase(self, word: str) -> None:
        hit = {id for id, one in self.known.items() if one.body is not None and word in one.body["text"]}
        self._drop(hit)
        self.say(f"erased {len(hit)}", erases=" ".join(sorted(hit)))

    def _drop(self, digests: set[str]) -> None:
        self.gone |= digests
        self.untold = [one for one in self.untold if one not in digests]
        for one in digests:
            self.known.pop(one, None)

    def texts(self) -> list[str]:
        return sorted(one.body["text"] for one in self.known.values() if one.body is not None)

    def collect(self) -> list[Revision]:
        return [self.known[one] for one in self.untold]

    def everything(self) -> list[Revision]:
        return list(self.known.values())

    def told(self, digests: Iterable[str]) -> None:
        told = set(digests)
        self.untold = [one for one in self.untold if one not in told]

    def absorb(self, revisions: Iterable[Revision], member: Member) -> Absorbed:
        done = Absorbed()
        for one in revisions:
            self.members[member.name] = member
            if one.digest in self.known or one.digest in self.gone or one.body is None:
                done.known += 1
                continue
            self.known[one.digest] = one
            done.changes.setdefault("text", {}).setdefault("new", 0)
            done.changes["text"]["new"] += 1
            self._drop(set(one.body.get("erases", "").split()))
        return done

    def erased(self) -> frozenset[str]:
        return frozenset(self.gone)

    def digests(self) -> dict[str, str]:
        return {"": hashlib.sha256(msgspec.json.encode([sorted(self.known), sorted(self.gone)])).hexdigest()}


class Machine:
    """A machine with a replica and a data folder."""

    def __init__(self, name: str, folder: Path, shared: Path | str) -> None:
        self.name, self.data, self.shared = name, folder / name, str(shared)
        self.data.mkdir(exist_ok=True)
        self.words = Words()
        self.clock = FixedClock()
        self.receipts: list[str] = []
        self.sync = self.opened()

    def opened(self) -> Sync:
        return Sync(Parts(self.data), self._replica, lambda: self.receipts, self.clock, lambda what: None)

    def _replica(self, machine: str) -> Words:
        self.words.machine = machine
        return self.words

    @property
    def files(self) -> SyncFiles:
        return SyncFiles(self.data)

    @property
    def id(self) -> str:
        state = self.files.load()
        assert state is not None
        return state.card.machine

    def place(self, number: int) -> Path:
        """The file of one of its bundles in the shared folder."""
        return Path(self.shared) / "machines" / self.id / f"{number:08}.bundle"

    def init(self) -> Machine:
        self.sync.init(self.shared, PASSPHRASE, name=self.name)
        return self

    def join(self, passphrase: str = PASSPHRASE) -> Machine:
        self.sync.join(self.shared, passphrase, name=self.name)
        return self

    def copied(self, folder: Path) -> Machine:
        """This machine once more, from a copy of its data folder."""
        shutil.copytree(self.data, folder / self.name)
        made = Machine(self.name, folder, self.shared)
        made.words.known, made.words.gone = dict(self.words.known), set(self.words.gone)
        made.words.untold = list(self.words.untold)
        return made


def cheap_passphrases() -> None:
    """Let scrypt take milliseconds: a test opens dozens of keys, and nobody guesses them."""
    ciphers.COST = 1 << 14
