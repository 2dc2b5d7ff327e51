"""Whatever is broken in a store, the verification of its log and the doctor say so in words; nothing raises raw."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.helpers.cli import Shell

# In these stores the log itself differs from what the file beside it says of it.
pytestmark = pytest.mark.filterwarnings("ignore::lukasa.model.errors.LostWrites")

DEEP = "[" * 200_000
UNGUARDED = "DROP TRIGGER events_fixed; DROP TRIGGER events_kept;"
BROKEN = {
    "no events": "DROP TABLE events",
    "no head": "DROP TABLE head",
    "an empty head": "DELETE FROM head",
    "no entries": "PRAGMA foreign_keys = OFF; DROP TABLE entries",
    "no meta": "DROP TABLE meta",
    "no time": f"{UNGUARDED} UPDATE events SET at = 'never' WHERE seq = 2",
    "no JSON": f"{UNGUARDED} UPDATE events SET detail = 'null and void' WHERE seq = 2",
    "a list": f"{UNGUARDED} UPDATE events SET detail = '[1, 2]' WHERE seq = 2",
    "a deep list": f"{UNGUARDED} UPDATE events SET detail = '{DEEP}' WHERE seq = 2",
    "no text": f"{UNGUARDED} UPDATE events SET detail = CAST(x'ff00fe' AS TEXT) WHERE seq = 2",
    "a scrub that is none": f"{UNGUARDED} UPDATE events SET action = 'scrub.executed', detail = '{{\"redacted\": 5}}'",
    "no digest": f"{UNGUARDED} UPDATE events SET digest = '', previous = ''",
    "a huge number": f"{UNGUARDED} UPDATE events SET seq = 9223372036854775807 WHERE seq = 2",
    "no state": "UPDATE entries SET state = 'elsewhere'",
    "no rest": "UPDATE entries SET rest = '[', tags = '{'",
    "no tier": "UPDATE scopes SET anchor = 'nothing'",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "data")
    for number in range(3):
        shell.put(f"Fact number {number} of the archive")
    return shell


def file_of(shell: Shell) -> Path:
    (file,) = (shell.data / "workspaces").glob("*/memory.db")
    return file


def told(shell: Shell) -> list[str]:
    """What the verification and the doctor print, for people and for programs; each finds something wrong."""
    said = []
    for args in (("events", "verify"), ("doctor",), ("events", "list"), ("read", "archive"), ("list",)):
        for form in ((), ("--json",)):
            done = shell.call(*args, *form)
            assert "unexpected" not in done.output, done.output[:2000]
            assert len(done.output) < 20_000
            if args[0] == "doctor" or args[-1] == "verify":
                said.append(done.output if done.exit_code in (1, 3) else "")
    return said


@pytest.mark.parametrize("what", BROKEN)
def test_broken_rows_and_tables_are_reported(shell: Shell, what: str) -> None:
    """T17: a missing table or a row of garbage is a fault, a finding or a typed error, on each of them."""
    db = apsw.Connection(str(file_of(shell)))
    for _ in db.execute(BROKEN[what]):
        pass
    db.close()
    verify, _, doctor, _ = told(shell)
    if what not in ("no state", "no rest", "no tier", "no entries"):  # these are not of the log
        assert verify
    assert doctor


@pytest.mark.parametrize("keep", [0, 1, 100, 511, 512, 4096, 5000, 40_000, 100_000])
def test_a_file_cut_short_is_reported(shell: Shell, keep: int) -> None:
    """T17: however much of the file is left."""
    file = file_of(shell)
    file.write_bytes(file.read_bytes()[:keep])
    assert all(told(shell))


def test_every_page_of_garbage_is_survived(shell: Shell) -> None:
    """T17: each page of the file in turn is overwritten: no command fails but by a typed error."""
    file = file_of(shell)
    whole = file.read_bytes()
    for page in range(0, len(whole), 4096 * 7):
        file.write_bytes(whole[:page] + b"\xa5" * 4096 + whole[page + 4096 :])
        told(shell)


def test_a_writer_keeps_nobody_from_verifying(shell: Shell) -> None:
    """T17: while another program holds the lock for writing, the log verifies all the same."""
    db = apsw.Connection(str(file_of(shell)))
    db.execute("BEGIN IMMEDIATE")
    assert shell.json("events", "verify")["whole"] is True
    db.execute("ROLLBACK")
    db.close()
