"""Sync as its users see it: several data folders, a shared folder or a git repository, real processes, and trouble."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from lukasa import Lukasa
from lukasa.model.errors import StoreBusy, StoreError
from lukasa.providers.sync import ciphers
from lukasa.providers.sync.sealing import Sealing
from lukasa.providers.sync.sync_files import SyncFiles
from tests.helpers.cli import Shell
from tests.helpers.processes import TORTURE, finish, fork, until

PASSPHRASE = "lantern orbit crumble violet seven"
NEW = "granite willow teapot eleven marsh"
PLACES = range(1, 1200, 7) if TORTURE else range(20, 700, 170)


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scrypt take milliseconds; the stories about passphrases themselves are not about its cost."""
    monkeypatch.setattr(ciphers, "COST", 1 << 14)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory, where there is one: what a power cut leaves is not in question here."""
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lukasa-sync-", dir=fast) as made:
        yield Path(made)


@pytest.fixture(params=["folder", "git"])
def shared(request: pytest.FixtureRequest, place: Path) -> Path:
    """Where the machines meet."""
    if request.param == "folder":
        return place / "shared"
    subprocess.run(["git", "init", "--quiet", "--bare", str(place / "shared.git")], check=True)
    return place / "shared.git"


def shell(data: Path, **env: str) -> Shell:
    return Shell(data, {"LUKASA_EMBEDDER": "none", "NO_COLOR": "1", "LUKASA_SYNC_PASSPHRASE": PASSPHRASE, **env})


@contextmanager
def machines(place: Path, shared: Path, *names: str) -> Iterator[list[Lukasa]]:
    """Open the memory of some machines; the first has begun the sync, and the others have joined."""
    opened = [Lukasa.open(place / name, embedder="none") for name in names]
    try:
        opened[0].workspace()
        opened[0].sync.init(str(shared), PASSPHRASE, name=names[0])
        for name, one in zip(names[1:], opened[1:], strict=True):
            one.sync.join(str(shared), PASSPHRASE, name=name)
        yield opened
    finally:
        for one in opened:
            one.close()


def meet(*memories: Lukasa, rounds: int = 2) -> None:
    """Let machines sync in turn until all have heard of all."""
    for _ in range(rounds):
        for one in memories:
            done = one.sync.run()
            assert (done.refused, done.waits, done.waiting) == ([], [], 0)


def texts(memory: Lukasa) -> list[str]:
    return sorted(one.content for one in memory.workspace().entries("workspace"))


def states(*memories: Lukasa) -> set[str]:
    """The digests of some machines: one if all have the same memory."""
    found = set()
    for one in memories:
        one.sync.run()
        found.add(one.sync.status().state)
    return found


# What a user does


def test_put_here_read_there(place: Path) -> None:
    """Real processes: begin, join, put on one machine, read on the other; the sentence tells what came and went."""
    desk, laptop = shell(place / "desk"), shell(place / "laptop")
    shared = str(place / "shared")
    desk.put("The villain is called Malachar")
    begun = desk.process("sync", "init", shared, "--name", "desk", "--json")
    assert begun.returncode == 0, begun.stderr
    joined = laptop.process("sync", "join", shared, "--name", "laptop")
    assert joined.returncode == 0, joined.stderr
    assert json.loads(begun.stdout)["fingerprint"] in joined.stdout.decode()
    assert b"from desk" in joined.stdout
    assert "Malachar" in laptop.run("read", "who is the villain?")
    laptop.put("The hero is called Ada")
    assert laptop.process("sync").stdout.decode().startswith("synced  sent 1 change, took nothing")
    heard = desk.json("sync")
    assert (heard["taken"], [one["name"] for one in heard["joined"]]) == ({"laptop": 1}, ["laptop"])
    assert "Ada" in desk.run("read", "who is the hero?")
    status = desk.json("sync", "status")
    assert [(one["name"], one["behind"]) for one in status["machines"]] == [("desk", 0), ("laptop", 0)]
    assert "the same memory" in desk.run("sync", "status")


def test_both_edited_both_kept(place: Path, shared: Path) -> None:
    """Two machines change one text apart: both texts are there on both, and the inbox of both shows the pair."""
    with machines(place, shared, "desk", "laptop") as (desk, laptop):
        id = desk.workspace().put("workspace", "The ferry leaves at noon").id
        meet(desk, laptop)
        desk.workspace().update(id, content="The ferry leaves at one")
        laptop.workspace().update(id, content="The ferry leaves at two")
        meet(desk, laptop)
        for one in (desk, laptop):
            assert texts(one) == ["The ferry leaves at one", "The ferry leaves at two"]
            assert len(one.workspace().inbox()) == 1
        assert len(states(desk, laptop)) == 1


def test_three_machines_and_one_that_was_away(place: Path, shared: Path) -> None:
    """All write; one is offline for long; in the end all have all, and the same digest."""
    with machines(place, shared, "desk", "laptop", "phone") as (desk, laptop, phone):
        phone.workspace().put("workspace", "Written on the train")
        for day in range(4):
            desk.workspace().put("workspace", f"desk on day {day}")
            laptop.workspace().put("workspace", f"laptop on day {day}")
            meet(desk, laptop, rounds=1)
        meet(phone, desk, laptop)
        assert len(texts(phone)) == 9
        assert texts(desk) == texts(laptop) == texts(phone)
        assert len(states(desk, laptop, phone)) == 1


def test_memory_of_both_is_there(place: Path) -> None:
    """A machine with memory of its own joins: nothing of either is lost, and of two workspaces of one name both stay.

    `lukasa workspace merge` brings them together, on one machine for all.
    """
    with Lukasa.open(place / "laptop", embedder="none") as before:
        before.workspace().put("workspace", "Known to the laptop alone")
        before.workspace("garden").put("workspace", "The roses are cut in March")
    with machines(place, place / "shared", "desk", "laptop") as (desk, laptop):
        desk.workspace().put("workspace", "Known to the desk alone")
        meet(desk, laptop)
        (other,) = [info.name for info in desk.workspaces() if info.name.startswith("main (synced")]
        desk.merge_workspaces(other, "main", confirm=desk.merge_plan(other, "main").digest)
        meet(desk, laptop)
        for one in (desk, laptop):
            assert texts(one) == ["Known to the desk alone", "Known to the laptop alone"]
            assert [e.content for e in one.workspace("garden").entries("workspace")] == ["The roses are cut in March"]


def test_preferences_of_others_wait(place: Path) -> None:
    """With --team, a preference of another person is held until somebody accepts it here."""
    shared = place / "shared"
    with Lukasa.open(place / "ann", embedder="none") as ann, machines(place, shared, "desk") as (desk,):
        ann.sync.join(str(shared), PASSPHRASE, name="ann", team=True)
        desk.workspace().put("workspace", "Always answer in French", kind="procedural")
        desk.workspace().put("workspace", "The harbour freezes in January")
        meet(desk, ann)
        assert texts(ann) == ["The harbour freezes in January"]
        (held,) = ann.workspace().inbox().entries
        ann.workspace().accept(held.entry.id)
        assert len(texts(ann)) == 2


# Erasing


def files_with(word: bytes, *folders: Path) -> list[str]:
    return [str(one) for folder in folders for one in folder.rglob("*") if one.is_file() and word in one.read_bytes()]


def opened_bundles(data: Path) -> Iterator[str]:
    """Decrypt what a machine has told, as its own copies have it."""
    state = SyncFiles(data).load()
    assert state is not None
    seal = Sealing(state.memory)
    for path in sorted((data / "sync" / "own").glob("*.bundle")):
        yield from opened(seal, path.read_bytes(), state.card, state.keys)


def opened(seal: Sealing, data: bytes, card: Any, keys: Any) -> Iterator[str]:
    header = seal.header(data, card, "it")
    for record in seal.unpack(data, card, keys[header.key], "it").bundle.records:
        yield f"{record.about} {record.text or ''}"


def shared_bundles(data: Path, shared: Path) -> Iterator[str]:
    """Decrypt what all machines have in the shared folder."""
    state = SyncFiles(data).load()
    assert state is not None
    cards = {state.card.machine: state.card, **{id: known.card for id, known in state.known.items()}}
    for path in sorted(shared.rglob("*.bundle")):
        yield from opened(Sealing(state.memory), path.read_bytes(), cards[path.parent.name], state.keys)


def test_erased_here_gone_everywhere(place: Path) -> None:
    """Erase on one machine: 0 bytes in any file of any machine, in clear or in a bundle, and the receipt waits."""
    shared = place / "shared"
    with machines(place, shared, "desk", "laptop") as (desk, laptop):
        desk.workspace().put("workspace", "Zenobia Quill prefers the window seat")
        laptop.workspace().put("workspace", "Zenobia Quill plays the oboe on Sundays")
        laptop.workspace().put("workspace", "The harbour freezes in January")
        meet(desk, laptop)
        assert any("Zenobia" in text for text in shared_bundles(place / "desk", shared))
        plan = desk.workspace().erase_plan(person="Zenobia Quill")
        receipt = desk.workspace().erase(person="Zenobia Quill", confirm=plan.digest)
        assert (receipt.clean, receipt.unconfirmed) == (True, ("laptop",))
        desk.sync.run()
        assert desk.workspace().erasures()[0].unconfirmed == ("laptop",)
        laptop.sync.run()
        desk.sync.run()
        assert desk.workspace().erasures()[0].unconfirmed == ()
        assert texts(laptop) == texts(desk) == ["The harbour freezes in January"]
        assert len(states(desk, laptop)) == 1
    assert files_with(b"Zenobia", place) == files_with(b"oboe", place) == []
    told = [*opened_bundles(place / "desk"), *opened_bundles(place / "laptop"), *shared_bundles(place / "desk", shared)]
    assert any("harbour" in text for text in told)
    assert [text for text in told if "Zenobia" in text or "oboe" in text] == []
    with machines_joining(place, shared, "phone") as phone:
        assert texts(phone) == ["The harbour freezes in January"]
        assert len(states(phone)) == 1


@contextmanager
def machines_joining(place: Path, shared: Path, name: str) -> Iterator[Lukasa]:
    with Lukasa.open(place / name, embedder="none") as opened:
        done = opened.sync.join(str(shared), PASSPHRASE, name=name)
        assert (done.refused, done.waiting) == ([], 0)
        yield opened


# Members and passphrases


def test_a_removed_machine_is_out(place: Path) -> None:
    """What it said before stays; it reads nothing more, is told so, and its words are refused."""
    desk, laptop = shell(place / "desk", LUKASA_SYNC_NEW_PASSPHRASE=NEW), shell(place / "laptop")
    desk.put("The villain is called Malachar")
    desk.run("sync", "init", str(place / "shared"), "--name", "desk")
    laptop.run("sync", "join", str(place / "shared"), "--name", "laptop")
    laptop.put("Said before")
    laptop.run("sync")
    desk.run("sync")
    assert "laptop" in desk.run("sync", "remove", "laptop")
    desk.put("Said afterwards")
    desk.run("sync")
    laptop.put("Said by the one that is out")
    assert laptop.fails("sync", code=1)["code"] == "not-a-member"
    assert "Said before" in desk.run("list")
    assert "Said afterwards" not in laptop.run("list")
    assert desk.json("sync")["taken"] == {}
    assert "Said by the one" not in desk.run("list")
    again = shell(place / "laptop", LUKASA_SYNC_PASSPHRASE=NEW)
    again.run("sync", "join", str(place / "shared"), "--name", "laptop, again")
    assert "Said afterwards" in again.run("list")
    desk.run("sync")
    assert "Said by the one that is out" in desk.run("list")


def test_passphrases_that_do_not_do(place: Path) -> None:
    """A wrong one, a short one and none: typed errors with a fix, and nothing is left behind."""
    desk, laptop = shell(place / "desk"), shell(place / "laptop")
    desk.run("sync", "init", str(place / "shared"), "--name", "desk")
    wrong = shell(place / "laptop", LUKASA_SYNC_PASSPHRASE="not the right one at all")
    assert wrong.fails("sync", "join", str(place / "shared"), code=1)["code"] == "wrong-passphrase"
    short = shell(place / "other", LUKASA_SYNC_PASSPHRASE="short")
    assert short.fails("sync", "init", str(place / "elsewhere"), code=2)["code"] == "invalid-input"
    none = shell(place / "other", LUKASA_SYNC_PASSPHRASE="")
    assert "LUKASA_SYNC_PASSPHRASE" in none.fails("sync", "init", str(place / "elsewhere"), code=2)["fix"]
    assert not (place / "elsewhere").exists()
    (place / "secret").write_text(f"{PASSPHRASE}\n")
    assert none.fails("sync", code=1)["code"] == "not-found"
    laptop.env["LUKASA_SYNC_PASSPHRASE"] = ""
    laptop.run("sync", "join", str(place / "shared"), "--passphrase-file", str(place / "secret"))
    assert len(list((place / "shared" / "machines").iterdir())) == 2


def test_keys_leave_neither_with_an_export_nor_with_a_backup(place: Path) -> None:
    """The private keys are in no file that leaves the data folder on purpose."""
    with machines(place, place / "shared", "desk") as (desk,):
        state = SyncFiles(place / "desk").load()
        assert state is not None
        desk.export(place / "out.jsonl")
        desk.backup(place / "backups")
    secrets = [state.secrets.sign, state.secrets.agree, *(key.secret for key in state.keys.values())]
    held = b"".join(p.read_bytes() for p in place.rglob("*") if p.is_file() and "desk/sync" not in str(p))
    for secret in secrets:
        assert secret.encode() not in held
        assert bytes.fromhex(secret) not in held
    assert not [path for path in (place / "backups").rglob("*") if "sync" in path.name]


# Trouble


class Wire:
    """Kills the process at its k-th step: an SQL statement, or an event of a file. A power cut at a chosen place."""

    _FILES = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.link"})

    def __init__(self, at: int) -> None:
        self._left, self.armed = at, False
        apsw.connection_hooks.append(lambda db: db.trace_v2(apsw.SQLITE_TRACE_STMT, self._step))
        sys.addaudithook(lambda event, _: self._step() if event in self._FILES else None)

    def _step(self, *_: Any) -> None:
        if self.armed:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def sync_folder(data: Path, *, kill_at: int = 0, limit: int = 0) -> None:
    """Open a memory and do a round, in a process that may be killed or meet a full disk."""
    wire = Wire(kill_at) if kill_at else None
    with Lukasa.open(data, embedder="none") as memory:
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        if wire is not None:
            wire.armed = True
        memory.sync.run()


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two machines that have much to tell each other: new texts, both texts of one, and an erasure."""
    fast = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path_factory.mktemp("apart")
    ciphers.COST = 1 << 14
    with tempfile.TemporaryDirectory(prefix="lukasa-apart-", dir=fast) as made:
        place = Path(made)
        with machines(place, place / "shared", "desk", "laptop") as (desk, laptop):
            id = desk.workspace().put("workspace", "The ferry leaves at noon").id
            desk.workspace().put("workspace", "Zenobia Quill prefers the window seat")
            meet(desk, laptop)
            desk.workspace().update(id, content="The ferry leaves at one")
            laptop.workspace().update(id, content="The ferry leaves at two")
            laptop.workspace().put("workspace", "The harbour freezes in January")
            plan = desk.workspace().erase_plan(person="Zenobia Quill")
            desk.workspace().erase(person="Zenobia Quill", confirm=plan.digest)
        yield place


def moved(apart: Path, place: Path) -> None:
    """Copy the machines and their shared folder, and tell the copies where it is now."""
    for name in ("desk", "laptop", "shared"):
        shutil.copytree(apart / name, place / name)
    for name in ("desk", "laptop"):
        files = SyncFiles(place / name)
        state = files.load()
        assert state is not None
        state.remote = str(place / "shared")
        files.save(state)


def assert_same_end(place: Path) -> None:
    opened = [Lukasa.open(place / name, embedder="none") for name in ("desk", "laptop")]
    try:
        meet(*opened)
        for one in opened:
            assert texts(one) == [
                "The ferry leaves at one",
                "The ferry leaves at two",
                "The harbour freezes in January",
            ]
        assert len(states(*opened)) == 1
    finally:
        for one in opened:
            one.close()
    assert files_with(b"Zenobia", place) == []


@pytest.mark.parametrize("name", ["desk", "laptop"])
@pytest.mark.parametrize("at", PLACES)
def test_killed_anywhere_it_goes_on(apart: Path, place: Path, name: str, at: int) -> None:
    """kill -9 at a chosen step of a sync, on either side; then going on ends in the same state."""
    moved(apart, place)
    first = "desk" if name == "laptop" else ""
    if first:
        assert finish(fork(partial(sync_folder, place / first))) == 0
    assert finish(fork(partial(sync_folder, place / name, kill_at=at))) in (0, -signal.SIGKILL)
    assert_same_end(place)


def test_a_full_disk_stops_a_sync_and_loses_nothing(apart: Path, place: Path) -> None:
    """A write that does not fit is a typed error; with room again, the sync ends as it would have."""
    for limit in (200, 1500):
        with suppress(FileNotFoundError):
            shutil.rmtree(place)
        place.mkdir()
        moved(apart, place)
        assert finish(fork(partial(fails_typed, place / "desk", limit))) == 0
        assert_same_end(place)


def fails_typed(data: Path, limit: int) -> None:
    with pytest.raises(StoreError):
        sync_folder(data, limit=limit)


def test_two_syncs_of_one_machine_at_once(apart: Path, place: Path) -> None:
    """Of two processes one syncs, and the other is told to wait; the end is the same."""
    moved(apart, place)
    children = [fork(partial(tries, place / "desk")) for _ in range(3)]
    assert [finish(child) for child in children] == [0, 0, 0]
    assert_same_end(place)


def tries(data: Path) -> None:
    with suppress(StoreBusy):
        sync_folder(data)


def test_two_machines_sync_at_once(apart: Path, place: Path) -> None:
    """Both machines sync at the same time, again and again, and nothing is refused for good."""
    moved(apart, place)
    for _ in range(2):
        children = [fork(partial(sync_folder, place / name)) for name in ("desk", "laptop")]
        assert [finish(child) for child in children] == [0, 0]
    assert_same_end(place)


def test_a_worker_syncs_by_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a worker runs, what another machine tells comes without a command; a trouble is told once."""
    monkeypatch.setenv("LUKASA_SYNC_MINUTES", "0.002")
    with machines(place, place / "shared", "desk", "laptop") as (desk, laptop):
        told: list[Any] = []
        stop, hurry = threading.Event(), threading.Event()
        crew = threading.Thread(target=desk.crew(tell=told.append).serve, args=(stop, hurry))
        crew.start()
        try:
            laptop.workspace().put("workspace", "The harbour freezes in January")
            laptop.sync.run()
            until(lambda: texts(desk) == ["The harbour freezes in January"])
            (place / "shared").rename(place / "unplugged")
            until(lambda: any("is not there" in getattr(one, "error", "") for one in told))
        finally:
            stop.set()
            crew.join()
        (place / "unplugged").rename(place / "shared")
    assert sum("is not there" in getattr(one, "error", "") for one in told) == 1
