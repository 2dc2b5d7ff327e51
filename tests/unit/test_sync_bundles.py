"""Bundles between machines: what proves itself is taken in order, and all else is refused and changes nothing."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lukasa.model.errors import (
    BundleRefused,
    BundleUnfinished,
    Conflict,
    InvalidInput,
    LukasaError,
    NotAMember,
    NotFound,
    StoreBusy,
    SyncError,
    SyncNewer,
    WrongPassphrase,
)
from lukasa.model.machines import Card, Lock, machine_id
from lukasa.providers.sync import ciphers, sealing
from lukasa.providers.sync.sealing import Sealing
from lukasa.providers.sync.sync_files import Parts
from tests.helpers.machines import PASSPHRASE, Machine, cheap_passphrases
from tests.helpers.processes import TORTURE


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ciphers, "COST", 1 << 14)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: what a power cut leaves is not in question here, and syncing is slow."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="lukasa-sync-", dir="/dev/shm") as made:
        yield Path(made)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines that sync through a folder."""
    first = Machine("desk", tmp_path, tmp_path / "shared").init()
    second = Machine("laptop", tmp_path, tmp_path / "shared").join()
    first.sync.run()
    return first, second


def bundle_of(machine: Machine) -> Path:
    """The newest bundle of a machine in the shared folder."""
    return max(machine.place(1).parent.glob("*.bundle"))


def test_what_one_says_the_other_reads(pair: tuple[Machine, Machine]) -> None:
    """Changes go both ways, and both end with the same digest."""
    desk, laptop = pair
    desk.words.say("the villain is Malachar")
    laptop.words.say("the hero is Ada")
    sent = desk.sync.run()
    took = laptop.sync.run()
    back = desk.sync.run()
    assert (sent.sent, took.taken, back.taken) == (1, {"desk": 1}, {"laptop": 1})
    assert desk.words.texts() == laptop.words.texts() == ["the hero is Ada", "the villain is Malachar"]
    assert back.state == took.state


def test_both_sides_see_the_same_fingerprint(tmp_path: Path) -> None:
    """The machine that was there hears of the new one, with the fingerprint that the new one shows."""
    desk = Machine("desk", tmp_path, tmp_path / "shared").init()
    laptop = Machine("laptop", tmp_path, tmp_path / "shared").join()
    heard = desk.sync.run().joined
    assert [(one.name, one.machine) for one in heard] == [("laptop", laptop.id)]
    shown = {one.name: one.fingerprint for one in laptop.sync.status().machines}
    assert shown == {one.name: one.fingerprint for one in desk.sync.status().machines}


def test_nothing_is_readable_in_the_folder(pair: tuple[Machine, Machine]) -> None:
    """Neither a text nor the name of a machine is in the shared folder."""
    desk, _ = pair
    desk.words.say("the villain is Malachar")
    desk.sync.run()
    held = b"".join(path.read_bytes() for path in Path(desk.shared).rglob("*") if path.is_file())
    assert b"Malachar" not in held
    assert b"laptop" not in held


def test_the_private_key_is_for_the_owner_alone(pair: tuple[Machine, Machine]) -> None:
    """The file with the keys has mode 0600, in a folder with mode 0700."""
    for machine in pair:
        file = machine.data / "sync" / "machine.json"
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


# Refusals


def refused(reader: Machine) -> str:
    """Sync, and return why a bundle was refused; what the reader knew stays as it was."""
    before = reader.words.texts()
    done = reader.sync.run()
    assert reader.words.texts() == before
    assert len(done.refused) == 1, (done.refused, done.waits)
    return done.refused[0]


def test_a_forged_bundle_is_refused(pair: tuple[Machine, Machine]) -> None:
    """A member signs in another one's name; the sentence names file and machine, and the next machine goes on."""
    desk, laptop = pair
    state = laptop.files.load()
    assert state is not None
    laptop.words.say("not by desk")
    laptop.sync.run()
    data = bundle_of(laptop).read_bytes()
    forged = desk.place(2)
    forged.write_bytes(data)
    desk.words.say("truly by desk")
    told = refused(laptop)
    assert f"bundle 2 of desk ({desk.id}/00000002.bundle) is refused" in told
    assert "another machine" in told or "signature" in told
    desk.sync.run()
    assert laptop.sync.run().refused == []
    assert "truly by desk" in laptop.words.texts()


def test_an_altered_bundle_is_written_again_by_its_machine(pair: tuple[Machine, Machine]) -> None:
    """A byte falls over on the way: the reader refuses and says so, the writer hears it and repairs its file."""
    desk, laptop = pair
    desk.words.say("a long tale")
    desk.sync.run()
    file = bundle_of(desk)
    whole = file.read_bytes()
    file.write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
    assert "is refused" in refused(laptop)
    desk.sync.run()
    assert file.read_bytes() == whole
    assert laptop.sync.run().taken == {"desk": 1}


def test_a_file_that_is_still_being_copied_waits(pair: tuple[Machine, Machine]) -> None:
    """A file that ends too early is not refused for good: it is read when it is whole."""
    desk, laptop = pair
    desk.words.say("a long tale")
    desk.sync.run()
    file = bundle_of(desk)
    whole = file.read_bytes()
    for size in (0, 5, 15, 40, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        done = laptop.sync.run()
        assert (done.refused, len(done.waits), laptop.words.texts()) == ([], 1, []), size
        assert "00000002.bundle" in done.waits[0]
    file.write_bytes(whole)
    assert laptop.sync.run().taken == {"desk": 1}


def test_order_and_repetition_of_files_do_not_matter(pair: tuple[Machine, Machine]) -> None:
    """The second bundle arrives first, conflict copies lie around, and an old file comes again."""
    desk, laptop = pair
    for text in ("one", "two", "three"):
        desk.words.say(text)
        desk.sync.run()
    kept = {path.name: path.read_bytes() for path in desk.place(1).parent.glob("*.bundle")}
    desk.place(2).unlink()
    desk.place(3).with_name("00000003 (conflicted copy).bundle").write_bytes(b"rubbish")
    desk.place(3).with_name(".syncthing.00000003.bundle.tmp").write_bytes(b"rubbish")
    assert laptop.sync.run().taken == {}
    desk.place(2).write_bytes(kept["00000002.bundle"])
    assert laptop.sync.run().taken == {"desk": 3}
    assert laptop.sync.run().taken == {}


def test_bundles_out_of_their_place_are_refused(pair: tuple[Machine, Machine]) -> None:
    """A bundle under another number, and one again under the next number."""
    desk, laptop = pair
    desk.words.say("one")
    desk.sync.run()
    desk.words.say("two")
    desk.sync.run()
    second, third = desk.place(2).read_bytes(), desk.place(3).read_bytes()
    desk.place(2).write_bytes(third)
    assert "it says that it is number 3" in refused(laptop)
    desk.place(2).write_bytes(second)
    desk.place(3).write_bytes(second)
    done = laptop.sync.run()
    assert done.taken == {"desk": 1}
    assert "it says that it is number 2" in done.refused[0]


def test_a_history_that_was_written_anew_is_refused(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    """A copy of a machine tells another story: its bundle does not follow the one that was read."""
    desk, laptop = pair
    (tmp_path / "copy").mkdir()
    twin = desk.copied(tmp_path / "copy")
    for text in ("one", "two"):
        desk.words.say(text)
        desk.sync.run()
    laptop.sync.run()
    with pytest.raises(SyncError, match="its data folder was copied"):
        twin.sync.run()
    twin.words.say("another one")
    desk.place(2).unlink()
    desk.place(3).unlink()
    for text in ("a", "b", "c"):
        twin.words.say(text)
        twin.sync.run()
    assert "it does not follow the one before it" in refused(laptop)


def test_a_bundle_of_another_memory_is_refused(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    """The bundle of a machine of another memory, even with all keys, is not taken."""
    desk, laptop = pair
    other = Machine("other", tmp_path, tmp_path / "elsewhere").init()
    other.words.say("from elsewhere")
    other.sync.run()
    folder = Path(desk.shared) / "machines" / other.id
    folder.mkdir()
    for file in ("card", "00000001.bundle", "00000002.bundle"):
        (folder / file).write_bytes((other.place(1).parent / file).read_bytes())
    told = refused(laptop)
    assert "it belongs to another memory" in told


def test_who_does_not_know_the_passphrase_is_no_member(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """A machine that makes up its own key, with a card and bundles, is passed over, and joining by guess fails."""
    desk, laptop = pair
    stranger = Machine("stranger", tmp_path, desk.shared)
    with pytest.raises(WrongPassphrase):
        stranger.join("a wrong passphrase it is")
    assert not stranger.sync.configured
    state = desk.files.load()
    assert state is not None
    seal = Sealing(state.memory)
    secrets, sign, agree = (
        __import__("lukasa.providers.sync.sync_files", fromlist=["Parts"]).Parts(tmp_path).new_machine()
    )

    card = Card(machine_id(sign, agree), "stranger", sign, agree, desk.clock.now())
    key, _ = seal.new_key(1, [card])
    folder = Path(desk.shared) / "machines" / card.machine
    folder.mkdir()
    (folder / "card").write_bytes(seal.card(card, secrets, key))
    done = laptop.sync.run()
    assert done.joined == []
    where = f"the card of machine {card.machine[:8]} ({card.machine}/card)"
    assert done.waits == [f"{where} is sealed with a key that this machine does not have"]


def test_a_bundle_that_expands_to_gigabytes_is_refused(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member sends a decompression bomb: it is expanded no further than to the bound."""
    desk, laptop = pair
    bomb = zlib.compress(bytes(40_000_000), 9)
    monkeypatch.setattr(sealing, "_packed", lambda data: b"\x01" + bomb if b"boom" in data else b"\x00" + data)
    desk.words.say("boom")
    with pytest.raises(BundleRefused):  # the writer reads what it wrote
        desk.sync.run()
    monkeypatch.undo()
    desk.place(2).write_bytes((desk.data / "sync" / "own" / "00000002.bundle").read_bytes())
    assert "expands to more than 32,000,000 bytes" in refused(laptop)


def test_a_newer_format_is_left_alone(pair: tuple[Machine, Machine]) -> None:
    """A bundle of a newer format says to upgrade; nothing of it is taken."""
    desk, laptop = pair
    desk.words.say("from the future")
    desk.sync.run()
    data = bundle_of(desk).read_bytes()
    bundle_of(desk).write_bytes(data.replace(b"lukasa-bundle 1\n", b"lukasa-bundle 2\n", 1))
    assert "has version 2 of the format" in refused(laptop)


def test_hostile_parameters_of_scrypt_are_refused() -> None:
    """A lock that asks for gigabytes of memory costs nothing."""
    for n, r, p in ((1 << 30, 8, 1), (1 << 17, 1024, 1), (1 << 17, 8, 64), (2, 8, 1), (3 << 15, 8, 1)):
        with pytest.raises(ciphers.Unopened, match="out of bounds"):
            ciphers.unlock(PASSPHRASE, "", Lock(n, r, p, "00" * 16, ""))


def test_a_short_passphrase_is_refused(tmp_path: Path) -> None:
    """Whoever holds the folder may guess as fast as they can, so the passphrase has to be long."""
    with pytest.raises(InvalidInput, match="has 5 characters"):
        Machine("desk", tmp_path, tmp_path / "shared").sync.init(str(tmp_path / "shared"), "short")
    assert not (tmp_path / "shared").exists()


@settings(max_examples=1_500 if TORTURE else 150)
@given(data=st.data())
def test_no_damage_gets_through(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Flip, cut, repeat or swap bytes anywhere: a typed error, and nothing was taken."""
    folder, desk, laptop = _damaged_pair(tmp_path_factory)
    state = laptop.files.load()
    assert state is not None
    seal, card = Sealing(state.memory), state.known[desk.id].card
    whole = _emptied_bundle(desk) if data.draw(st.booleans()) else folder[2]
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        until = min(len(damaged), at + data.draw(st.integers(1, 60)))
        match data.draw(st.sampled_from(["flip", "cut", "repeat", "swap", "end", "zero"])):
            case "flip":
                damaged[at] ^= data.draw(st.integers(1, 255))
            case "cut":
                del damaged[at:until]
            case "repeat":
                damaged[at:at] = damaged[at:until]
            case "swap":
                damaged[at:until] = reversed(damaged[at:until])
            case "zero":
                damaged[at:until] = bytes(until - at)
            case _:
                del damaged[at:]
        if not damaged:
            break
    header = seal.header(whole, card, "it")
    if bytes(damaged) == whole:
        return
    with pytest.raises((BundleRefused, BundleUnfinished, SyncNewer)):
        seal.unpack(bytes(damaged), card, state.keys[header.key], "it")


_MADE: list[tuple[dict[int, bytes], Machine, Machine]] = []


def _damaged_pair(factory: pytest.TempPathFactory) -> tuple[dict[int, bytes], Machine, Machine]:
    if not _MADE:
        folder = factory.mktemp("fuzz")
        cheap_passphrases()
        desk = Machine("desk", folder, folder / "shared").init()
        laptop = Machine("laptop", folder, folder / "shared").join()
        for text in ("short", "a longer text " * 40, "the villain is Malachar"):
            desk.words.say(text)
        desk.sync.run()
        laptop.sync.run()
        _MADE.append(({2: desk.place(2).read_bytes()}, desk, laptop))
    return _MADE[0]


def _emptied_bundle(desk: Machine) -> bytes:
    state = desk.files.load()
    assert state is not None
    digest = next(id for id, one in desk.words.known.items() if one.body and "Malachar" in one.body["text"])
    made = Sealing(state.memory).without(_MADE[0][0][2], [digest], state.secrets, state.current)
    assert made is not None
    return made


# Members


def test_a_removed_machine_reads_nothing_that_comes_after(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """What it said before stays, its later bundles are refused, and the new key is not for it."""
    desk, laptop = pair
    laptop.words.say("said before")
    laptop.sync.run()
    desk.sync.remove("laptop", "another passphrase for later")
    desk.words.say("said afterwards")
    desk.sync.run()
    assert "said before" in desk.words.texts()
    with pytest.raises(NotAMember, match="desk has removed this machine"):
        laptop.sync.run()
    assert "said afterwards" not in laptop.words.texts()
    with pytest.raises(NotAMember):
        laptop.sync.run()
    state = laptop.files.load()
    assert state is not None
    for key in state.keys.values():
        with pytest.raises(BundleRefused):
            Sealing(state.memory).unpack(bundle_of(desk).read_bytes(), state.known[desk.id].card, key, "it")


def test_later_bundles_of_a_removed_machine_do_not_count(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """A removed machine that does not look goes on writing; the others take nothing of it, nor does a newcomer."""
    desk, laptop = pair
    laptop.words.say("said before")
    laptop.sync.run()
    hidden = Path(desk.shared) / "machines" / desk.id
    desk.sync.remove("laptop", "another passphrase for later")
    hidden.rename(tmp_path / "hidden")  # the removed machine does not see what desk wrote
    laptop.words.say("said after it was removed")
    laptop.sync.run()
    (tmp_path / "hidden").rename(hidden)
    assert desk.sync.run().taken == {}
    third = Machine("third", tmp_path, desk.shared).join("another passphrase for later")
    assert third.words.texts() == ["said before"]
    with pytest.raises(NotAMember, match="none for this machine"):
        Machine("fourth", tmp_path, desk.shared).join(PASSPHRASE)


def test_a_card_with_an_old_key_does_not_admit(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """A removed machine cannot come back under another name with the key that it knows."""
    desk, _ = pair
    (tmp_path / "again").mkdir()
    desk.sync.remove("laptop", "another passphrase for later")
    hidden = Path(desk.shared) / "machines" / desk.id
    later = sorted(hidden.glob("*.bundle"))[-1]
    kept = later.read_bytes()
    later.unlink()
    again = Machine("again", tmp_path / "again", desk.shared)
    again.sync.join(desk.shared, PASSPHRASE, name="again")  # it sees the folder as it was before
    again.words.say("let me in")
    again.sync.run()
    later.write_bytes(kept)
    done = desk.sync.run()
    assert (done.joined, done.taken) == ([], {})
    assert "the machine is not a member" in done.refused[0]


def test_a_machine_that_missed_a_new_key_joins_again_as_itself(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """It joined while another one was being removed: with the new passphrase it goes on, and loses nothing."""
    desk, _ = pair
    hidden = tmp_path / "hidden"
    desk.sync.remove("laptop", "another passphrase for later")
    newest = bundle_of(desk)
    newest.rename(hidden)
    third = Machine("third", tmp_path, desk.shared).join()
    third.words.say("said in between")
    third.sync.run()
    before = third.id
    hidden.rename(newest)
    assert "said in between" not in desk.words.texts()
    with pytest.raises(NotAMember, match="none for this machine"):
        third.sync.run()
    third.join("another passphrase for later")
    assert third.id == before
    assert [one.name for one in desk.sync.run().joined] == ["third"]
    assert "said in between" in desk.words.texts()


def test_two_removals_at_the_same_time(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """Two machines each remove another one, apart: both are out afterwards, and neither reads on."""
    desk, laptop = pair
    third = Machine("third", tmp_path, desk.shared).join()
    fourth = Machine("fourth", tmp_path, desk.shared).join()
    for machine in (desk, laptop, third, fourth):
        machine.sync.run()
    laptop_folder = Path(desk.shared) / "machines" / laptop.id
    hidden = tmp_path / "hidden"
    desk.sync.remove("third", "the passphrase of the desk")
    newest = bundle_of(desk)
    newest.rename(hidden)
    laptop.sync.remove("fourth", "the passphrase of the laptop")
    hidden.rename(newest)
    assert laptop_folder.exists()
    for machine in (desk, laptop, desk, laptop):
        machine.words.say(f"by {machine.name} {machine.clock.now()}")
        machine.sync.run()
    desk.sync.run()
    for gone in (third, fourth):
        with pytest.raises(NotAMember):
            gone.sync.run()
    assert desk.words.texts() == laptop.words.texts()
    for machine in (desk, laptop):
        state = machine.files.load()
        assert state is not None
        assert set(state.members[state.current.id]) == {desk.id, laptop.id}


def test_a_new_passphrase_leaves_members_in(tmp_path: Path, pair: tuple[Machine, Machine]) -> None:
    """Those that are in need no passphrase; the old one admits nobody any more, and is not taken again."""
    desk, laptop = pair
    with pytest.raises(InvalidInput, match="counts now"):
        laptop.sync.passphrase(PASSPHRASE)
    desk.sync.passphrase("something else entirely")
    desk.words.say("with the new key")
    desk.sync.run()
    laptop.sync.run()
    assert "with the new key" in laptop.words.texts()
    with pytest.raises(NotAMember, match="none for this machine"):
        Machine("old", tmp_path, desk.shared).join(PASSPHRASE)
    assert Machine("third", tmp_path, desk.shared).join("something else entirely").words.texts() == desk.words.texts()


def test_trust_is_what_this_machine_says(pair: tuple[Machine, Machine]) -> None:
    """A machine's statements come in with the trust that the reader gave it, from then on."""
    desk, laptop = pair
    desk.sync.trust("laptop", "agent")
    laptop.words.say("a claim")
    laptop.sync.run()
    desk.sync.run()
    member = desk.words.members["laptop"]
    assert (member.own, member.trust.name) == (False, "AGENT")
    with pytest.raises(InvalidInput):
        desk.sync.trust("laptop", "boundless")
    with pytest.raises(NotFound):
        desk.sync.trust("nobody", "own")


# Erasures


def test_erased_words_leave_older_bundles(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    """The own bundle loses the text and still proves itself, and the receipt waits for the other machine."""
    desk, laptop = pair
    desk.words.say("Ada lives in Paris")
    desk.words.say("the sky is blue")
    desk.sync.run()
    laptop.sync.run()
    desk.words.erase("Ada")
    desk.receipts.append("receipt-1")
    assert desk.sync.run().emptied == 1
    assert desk.sync.unconfirmed("receipt-1") == ("laptop",)
    laptop.sync.run()
    desk.sync.run()
    assert desk.sync.unconfirmed("receipt-1") == ()
    for machine in (desk, laptop):
        assert not [text for text in machine.words.texts() if "Ada" in text]
    third = Machine("third", tmp_path, desk.shared).join()
    assert third.words.texts() == ["erased 1", "the sky is blue"]
    assert "Ada" not in "".join(opened_texts(desk))


def opened_texts(machine: Machine) -> Iterator[str]:
    """Decrypt all bundles of a machine in the shared folder."""
    state = machine.files.load()
    assert state is not None
    seal = Sealing(state.memory)
    for path in sorted(machine.place(1).parent.glob("*.bundle")):
        header = seal.claimed(path.read_bytes(), "it")
        opened = seal.unpack(path.read_bytes(), state.card, state.keys[header.key], "it")
        yield from (record.text or "" for record in opened.bundle.records)


def test_only_its_machine_can_empty_a_bundle(pair: tuple[Machine, Machine]) -> None:
    """The holder of the folder takes a record out: that is no erasure, and the bundle is refused."""
    desk, laptop = pair
    desk.words.say("keep me")
    desk.sync.run()
    parts = sealing._read(bundle_of(desk).read_bytes(), "it")
    robbed = msgspec.structs.replace(parts, records=(b"",), emptied=b"[0]", emptied_signature=bytes(64))
    bundle_of(desk).write_bytes(sealing._written(robbed))
    assert "is refused" in refused(laptop)
    bundle_of(desk).write_bytes(sealing._written(msgspec.structs.replace(parts, records=(b"",))))
    assert "a record was taken out of it" in refused(laptop)


# Places


def test_one_process_syncs_at_a_time(pair: tuple[Machine, Machine]) -> None:
    """A second sync of the same machine is told to wait."""
    desk, _ = pair
    with desk.files.held(), pytest.raises(StoreBusy, match="syncs now"):
        desk.opened().run()


def test_a_folder_that_is_gone_is_no_empty_folder(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    """A drive that is not mounted gives a sentence; nothing is written in its place."""
    desk, _ = pair
    Path(desk.shared).rename(tmp_path / "unplugged")
    with pytest.raises(NotFound, match="is not there"):
        desk.sync.run()
    Path(desk.shared).mkdir()
    with pytest.raises(NotFound, match="holds no memory"):
        desk.sync.run()
    assert list(Path(desk.shared).iterdir()) == []


def test_a_folder_with_other_files_is_not_taken(tmp_path: Path) -> None:
    """`init` takes an empty place only, and a place once."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(Conflict, match="not empty"):
        Machine("desk", tmp_path, tmp_path / "photos").init()
    desk = Machine("desk", tmp_path, tmp_path / "shared").init()
    with pytest.raises(Conflict):
        Machine("laptop", tmp_path, tmp_path / "shared").init()
    with pytest.raises(Conflict, match="already"):
        desk.init()


def test_leaving_forgets_the_keys(pair: tuple[Machine, Machine]) -> None:
    """The keys and bundles of the data folder go; what the others were told stays."""
    desk, laptop = pair
    laptop.words.say("goodbye")
    laptop.sync.run()
    laptop.sync.leave()
    assert sorted(path.name for path in (laptop.data / "sync").iterdir()) == ["lock"]
    assert desk.sync.run().taken == {"laptop": 1}
    with pytest.raises(LukasaError):
        laptop.sync.run()


# Git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare repository whose hooks leave a trace when they run."""
    made = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(made)], check=True)
    for hook in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction", "pre-push"):
        path = made / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{hook}\n")
        path.chmod(0o755)
    return made


def test_a_git_repository_carries_the_same(tmp_path: Path, repository: Path) -> None:
    """Three machines sync through a bare repository; none of its hooks runs, and what was erased is in no branch."""
    desk = Machine("desk", tmp_path, repository).init()
    laptop = Machine("laptop", tmp_path, repository).join()
    third = Machine("third", tmp_path, repository).join()
    desk.words.say("Ada lives in Paris")
    laptop.words.say("the sky is blue")
    for machine in (desk, laptop, third, desk, laptop):
        machine.sync.run()
    assert desk.words.texts() == laptop.words.texts() == third.words.texts()
    branches = subprocess.run(
        ["git", "-C", str(repository), "for-each-ref", "--format=%(refname:short)"], capture_output=True, check=True
    ).stdout.split()
    assert {one.decode() for one in branches} == {"lukasa/memory", *(f"lukasa/{m.id}" for m in (desk, laptop, third))}
    desk.words.erase("Ada")
    desk.sync.run()
    laptop.sync.run()
    count = subprocess.run(
        ["git", "-C", str(repository), "rev-list", "--count", f"lukasa/{desk.id}"], capture_output=True, check=True
    )
    assert int(count.stdout) == 1
    assert not list(tmp_path.glob("ran-*"))
    assert "Ada lives in Paris" not in laptop.words.texts()


@pytest.mark.parametrize(
    "address", ["ext::sh -c touch% x", "http://example.org/x.git", "git://example.org/x.git", "-x.git", "fd::1.git",
                "https://me:secret@example.org/x.git"],
)  # fmt: skip
def test_addresses_that_run_commands_or_hold_a_password_are_refused(tmp_path: Path, address: str) -> None:
    """Only https, ssh and paths are git remotes; the refusal does not repeat a password."""
    with pytest.raises((InvalidInput, LukasaError)) as told:
        Parts(tmp_path).remote(address)
    assert "secret" not in str(told.value)
