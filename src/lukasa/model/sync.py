"""What machines tell each other when they sync: revisions of things, and the bundles that carry them.

A thing is what can change on its own: the text of an entry, its other fields, a page, a note. Each change is a
revision that names the revisions it was made from, so that the revisions of a thing form a graph. Every machine that
has the same revisions has the same memory, whatever the order they came in.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from lukasa.model.events import canonical_json
from lukasa.model.values import Trust


class Revision(Struct, frozen=True):
    """One state of a thing. `body` is None once its words were erased: then only the digest is left.

    `store` is the id of a workspace, or empty for the account's own things. `at` is when the change was made, and
    `machine` who made it; both are empty for a merge, which follows from its parents alone. `salt` keeps anybody from
    guessing an erased body from the digest.
    """

    store: str
    kind: str
    thing: str
    parents: tuple[str, ...]
    body: dict[str, Any] | None
    at: datetime
    machine: str
    salt: str
    digest: str


def revision_digest(
    store: str,
    kind: str,
    thing: str,
    parents: tuple[str, ...],
    body: dict[str, Any],
    at: datetime,
    machine: str,
    salt: str,
) -> str:
    """Return the name of a revision: it commits to all that the revision says."""
    text = canonical_json([salt, store, kind, thing, sorted(parents), body, at.isoformat(), machine])
    return hashlib.sha256(text.encode()).hexdigest()


def thing_of(*name: str) -> str:
    """Return what stands for a name in a revision: a name may hold words that are to be erased one day."""
    return hashlib.sha256(canonical_json(list(name)).encode()).hexdigest()[:32]


class Stage(StrEnum):
    """How far a revision has come here."""

    WAITING = "waiting"  # one that it was made from has not come yet
    READY = "ready"  # it is not in memory yet
    DONE = "done"


class Erasure(StrEnum):
    """Whether the words of a revision are gone here."""

    NONE = ""
    FRESH = "fresh"  # nobody else knows it yet
    TOLD = "told"  # a revision says so


class KeptRevision(Struct, frozen=True):
    """A revision as a store keeps it.

    `spot` is where its text is shown: the thing, or the second place that it got in a conflict. `about` is the entry,
    conversation or transcript that it hangs on, and `twin` the key that only one shown thing may have. `told` says that
    it went out in a bundle of this machine. `member` is the other person that it came from, empty for the own machines,
    and `trust` the most that this person's statements keep here.
    """

    revision: Revision
    spot: str
    about: str = ""
    twin: str = ""
    stage: Stage = Stage.DONE
    told: bool = False
    erasure: Erasure = Erasure.NONE
    member: str = ""
    trust: Trust = Trust.AUTHOR


class SyncNote(Struct, frozen=True):
    """Something that this machine alone knows about sync, under a name."""

    name: str
    value: dict[str, Any]


class Sealed(Struct, frozen=True):
    """A record of a bundle: its digest, and its text, which is None once it was erased.

    `about` stays when the text goes: what the record belongs to, and nothing of its words.
    """

    digest: str
    text: str | None
    about: str = ""


class Bundle(Struct, frozen=True):
    """What one machine has to tell, in order: `number` counts from 1, `previous` is the digest of the bundle before.

    Its signature is over the digests of its records, so that a text can be erased and the rest still proves itself.
    """

    machine: str
    number: int
    previous: str
    at: datetime
    records: tuple[Sealed, ...]
