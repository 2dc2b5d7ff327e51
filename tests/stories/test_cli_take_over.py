"""Memory from before the project was renamed: found, offered, and moved by one command."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.providers.folders import EARLIER_NAME
from tests.helpers.cli import Shell

FACT = "The harbour freezes in January"
COMMAND = "lukasa doctor --take-over"


class House:
    """A home folder with the default places of both names in it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable, folder in (("XDG_DATA_HOME", "share"), ("XDG_CACHE_HOME", "cache")):
            monkeypatch.setenv(variable, str(home / folder))
        monkeypatch.delenv("LUKASA_MODELS", raising=False)
        self.old, self.new = home / "share" / EARLIER_NAME, home / "share" / "lukasa"
        self.old_cache, self.new_cache = home / "cache" / EARLIER_NAME, home / "cache" / "lukasa"
        self.shell = Shell(self.new, {"LUKASA_EMBEDDER": "none", "LUKASA_DATA": ""})

    def at_terminal(self, *args: str) -> str:
        """Run a command whose stderr is a terminal, and return what it writes there."""
        ours, theirs = os.openpty()
        try:
            command = [sys.executable, "-m", "lukasa.surfaces.cli.main", *args]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=theirs, env=self.shell.environment(), check=False, timeout=60
            )
            os.close(theirs)
            assert done.returncode == 0
            written = b""
            with suppress(OSError):  # a terminal that nobody writes to any more ends with an error
                while more := os.read(ours, 4096):
                    written += more
            return written.decode()
        finally:
            os.close(ours)

    def files(self) -> dict[str, bytes]:
        found = [path for folder in (self.old, self.new) for path in folder.rglob("*.db")]
        return {str(path): path.read_bytes() for path in found}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    made = House(tmp_path, monkeypatch)
    Shell(made.old).put(FACT)
    return made


def test_the_doctor_offers_it(house: House) -> None:
    """The doctor names the folder and the command, in one sentence, and leaves the folder alone."""
    told = [line for line in house.shell.run("doctor").splitlines() if str(house.old) in line]
    assert len(told) == 1
    assert COMMAND in told[0]
    assert house.shell.json("doctor")["earlier_folders"] == {"data": str(house.old), "cache": None, "taken_over": False}
    assert house.old.is_dir()


def test_it_is_taken_over(house: House) -> None:
    """One command moves data and models; the facts are readable afterwards, and nothing is offered any more."""
    house.old_cache.mkdir(parents=True)
    (house.old_cache / "model.onnx").write_text("a model")
    moved = house.shell.json("doctor", "--take-over")
    assert moved["healthy"] is True
    assert moved["earlier_folders"] == {"data": str(house.old), "cache": str(house.old_cache), "taken_over": True}
    assert not house.old.exists()
    assert (house.new_cache / "model.onnx").read_text() == "a model"
    assert house.shell.json("read", "harbour")["hits"][0]["entry"]["content"] == FACT
    assert str(house.old) not in house.shell.run("doctor")
    assert "Nothing to take over" in house.shell.run("doctor", "--take-over")


def test_a_new_folder_without_memory_makes_way(house: House) -> None:
    """A read created the new folder before anybody saw the note: that is no memory."""
    assert house.shell.json("read", "harbour")["hits"] == []
    assert house.new.is_dir()
    assert f"taken over: {house.old}" in house.shell.run("doctor", "--take-over")
    assert house.shell.json("read", "harbour")["hits"][0]["entry"]["content"] == FACT


def test_a_cache_of_the_new_name_stays(house: House) -> None:
    for cache in (house.old_cache, house.new_cache):
        cache.mkdir(parents=True)
    assert house.shell.json("doctor", "--take-over")["earlier_folders"]["cache"] is None
    assert house.old_cache.is_dir()


def test_both_hold_memory(house: House) -> None:
    """Refused with a next step, and nothing changed."""
    house.shell.put("The lantern was repaired in March")
    before = house.files()
    error = house.shell.fails("doctor", "--take-over", code=1)
    assert error["code"] == "conflict"
    assert str(house.old) in error["message"]
    assert f"--data {house.old}" in error["fix"]
    assert house.files() == before


def test_a_process_has_it_open(house: House) -> None:
    """Refused while a server, worker or chat uses the folder."""
    program = "memory = Lukasa.open(sys.argv[1]); memory.workspace(); print('open', flush=True); input()"
    with house.shell.running(f"import sys; from lukasa import Lukasa; {program}", str(house.old)):
        error = house.shell.fails("doctor", "--take-over", code=1)
    assert error["code"] == "store-busy"
    assert "stop the server" in error["fix"]
    assert house.old.is_dir()
    assert house.shell.json("doctor", "--take-over")["earlier_folders"]["taken_over"] is True


def test_a_note_when_a_new_folder_is_created(house: House) -> None:
    """One line on stderr, once."""
    done = house.shell.process("put", "The lantern was repaired in March")
    (told,) = done.stderr.decode().splitlines()
    assert told.startswith("note: ")
    assert COMMAND in told
    assert str(house.old) not in done.stdout.decode()
    assert house.shell.process("list").stderr == b""


def test_a_person_is_told_until_it_is_taken_over(house: House) -> None:
    """A hook has created the new folder, and said nothing; at a terminal, commands still name the earlier one."""
    house.shell.process("hook", "session-start", input=b'{"session_id": "s1", "cwd": "/"}')
    assert COMMAND in house.at_terminal("list")
    assert COMMAND in house.at_terminal("list")
    house.shell.json("doctor", "--take-over")
    assert house.at_terminal("list") == ""


def test_no_note_with_json(house: House) -> None:
    """A program that reads JSON gets one document and nothing else; `doctor --json` names the folder in it."""
    done = house.shell.process("list", "--json")
    assert done.returncode == 0
    assert done.stderr == b""


def test_a_hook_says_nothing_of_it(house: House) -> None:
    done = house.shell.process("hook", "session-start", input=b'{"session_id": "s1", "cwd": "/"}')
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize("by", ["option", "environment"])
def test_nothing_of_it_where_a_folder_is_named(house: House, tmp_path: Path, by: str) -> None:
    """LUKASA_DATA and --data say where memory is: the default places do not matter then."""
    named = str(tmp_path / "named")
    options = ("--data", named) if by == "option" else ()
    data = "" if by == "option" else named
    done = house.shell.process(*options, "doctor", LUKASA_DATA=data)
    assert str(house.old) not in (done.stdout + done.stderr).decode()
    assert house.shell.process(*options, "list", LUKASA_DATA=data).stderr == b""
    refused = house.shell.process(*options, "doctor", "--take-over", LUKASA_DATA=data)
    assert refused.returncode == 2
    assert house.old.is_dir()


def test_nothing_of_it_without_an_earlier_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path, monkeypatch)
    assert house.shell.process("list").stderr == b""
    with Lukasa.open(tmp_path / "other"):
        pass
    assert "earlier" not in house.shell.run("doctor")
