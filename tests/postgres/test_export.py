"""Export and import with a database: out of a folder into an account and back, beside other memory, and killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lukasa import Lukasa
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.moving import live
from tests.stories.test_export import body, killed


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("lived") / "data"
    live(data, FixedClock(), 20)
    return data


def shell(data: Path, url: str = "") -> Shell:
    more = {"LUKASA_DATABASE": url} if url else {}
    return Shell(data, {"LUKASA_EMBEDDER": "none", "NO_COLOR": "1", **more})


def test_between_a_folder_and_a_database(lived: Path, tmp_path: Path, database_url: str) -> None:
    """X1: everything with its vectors goes into a database and back into a folder, with the same bytes each time."""
    files = [tmp_path / f"{n}.jsonl" for n in range(3)]
    shell(lived).run("export", "--all", "--vectors", str(files[0]))
    there, back = shell(tmp_path / "there", database_url), shell(tmp_path / "back")
    assert there.json("import", str(files[0]))["way"] == "whole"
    there.run("export", "--all", "--vectors", str(files[1]))
    back.run("import", str(files[1]))
    back.run("export", "--all", "--vectors", str(files[2]))
    assert body(files[0]) == body(files[1]) == body(files[2])
    assert there.json("doctor")["healthy"]
    assert "Malachor" in there.run("-w", "novel", "read", "villain")


def test_a_killed_import_into_a_database_goes_on(lived: Path, tmp_path: Path, database_url: str) -> None:
    """X1: killed while rows come into a workspace beside others, it is not listed until all of it is there."""
    out, again = tmp_path / "out.jsonl", tmp_path / "again.jsonl"
    shell(lived).run("-w", "novel", "export", str(out))
    here = shell(tmp_path / "here", database_url)
    here.put("In use")
    for after in (1, 3):
        assert killed(here, "rows", after, "import", str(out))
        assert [one["name"] for one in here.json("workspace", "list")["workspaces"]] == ["main"]
    here.run("import", str(out))
    here.run("-w", "novel", "export", str(again))
    assert body(again) == body(out)
    assert here.json("doctor")["healthy"]


def test_a_workspace_is_merged_in_a_database(lived: Path, tmp_path: Path, database_url: str) -> None:
    """X1, S1: with something of everything into a workspace in use; the second time changes nothing."""
    out = tmp_path / "out.jsonl"
    shell(lived).run("-w", "novel", "export", str(out))
    here = shell(tmp_path / "here", database_url)
    here.put("In use")
    planned = here.json("import", str(out), "--into", "main", "--dry-run")
    done = here.json("import", str(out), "--into", "main", "--confirm", planned["digest"])
    assert done["stores"][0]["counts"] == planned["stores"][0]["counts"]
    again = here.json("import", str(out), "--into", "main")["stores"][0]["counts"]
    assert not any(of.get("new") or of.get("both") for of in again.values())
    assert here.json("doctor")["healthy"]
    with Lukasa.open(tmp_path / "folder", embedder="none", database="") as memory:
        memory.workspace("main")
    shutil.copy(out, tmp_path / "copy.jsonl")
    alike = shell(tmp_path / "folder").json("import", str(tmp_path / "copy.jsonl"), "--into", "main")
    entries = done["stores"][0]["counts"]["entries"]
    assert alike["stores"][0]["counts"]["entries"] == entries
