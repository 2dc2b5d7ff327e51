"""The command line looks things up: files, folders and books go in, passages come out with their places."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from lukasa import Lukasa
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.documents import epub, page, pdf
from tests.helpers.processes import until
from tests.helpers.repository import git

MANY = 3_000


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with a document of each kind."""
    folder = tmp_path / "library"
    (folder / "code").mkdir(parents=True)
    (folder / "deploys.md").write_text("# Deploys\n\nTwo people.\n\n## On Fridays\n\nNobody deploys on a Friday.\n")
    (folder / "plain.txt").write_text("The lamp oil is kept in the cellar behind the third door.\n")
    (folder / "gate.html").write_text(
        page("<h1>The gate</h1><p>The lantern burns green.</p><script>evil()</script>", "The gate")
    )
    (folder / "manual.pdf").write_bytes(
        pdf([["The crane lifts forty tonnes."], ["The winch is oiled weekly."]], "Crane")
    )
    (folder / "tale.epub").write_bytes(
        epub({"one.xhtml": page("<h1>The storm</h1><p>The keeper rowed out alone.</p>")}, "A tale")
    )
    (folder / "code" / "mill.py").write_text(
        "def grind(grain):\n    return grain * 2\n\n\ndef rest():\n    return None\n"
    )
    return folder


@pytest.mark.parametrize(
    ("asked", "document", "where"),
    [
        ("who deploys on Fridays", "library/deploys.md", {"section": "Deploys › On Fridays", "line": 7}),
        ("where is the lamp oil", "library/plain.txt", {"line": 1}),
        ("lantern green", "library/gate.html", {"section": "The gate"}),
        ("how often is the winch oiled", "library/manual.pdf", {"page": 2}),
        ("keeper rowed", "library/tale.epub", {"section": "The storm"}),
        ("grind grain", "library/code/mill.py", {"line": 1}),
    ],
)
def test_what_is_added_is_found_with_its_place(
    shell: Shell, library: Path, asked: str, document: str, where: dict[str, object]
) -> None:
    """K4: each format is added from a folder, and a hit cites document, version, section, page or line, and axes."""
    done = shell.json(
        "corpus", "add", str(library), "--collection", "books", "--tag", "shelf", "--standing", "canonical"
    )
    assert done["counts"] == {"added": 6}
    hit = shell.json("corpus", "search", asked)["hits"][0]
    assert hit["document"] == document
    assert {name: hit[name] for name in where} == where
    assert (hit["version"], hit["collection"], hit["origin"]) == (1, "books", "file")
    assert (hit["lifecycle"], hit["weight"], hit["standing"]) == ("current", 1.0, "canonical")
    assert "shelf" in hit["tags"]
    shown = shell.run("corpus", "search", asked)
    assert f"{document}#{hit['number']} version 1  file · current · weight 1 · canonical" in shown
    read = shell.json("corpus", "read", document, "--passage", str(hit["number"]))
    assert hit["text"].strip() in read["text"]


def test_an_empty_corpus_says_how_to_add(shell: Shell) -> None:
    """U5: the empty states name the next command."""
    for words in (("list",), ("search", "anything")):
        assert "No documents yet.\n  add some: lukasa corpus add PATH\n" in shell.run("corpus", *words)
    assert "lukasa corpus watch FOLDER" in shell.run("corpus", "watches")
    assert shell.fails("corpus", "read", "nothing", code=1)["code"] == "not-found"
    assert shell.fails("corpus", "add", "/nowhere/at/all", code=1)["code"] == "not-found"
    (failed,) = shell.json("corpus", "add", "https://example.org/", code=1)["files"]
    assert (failed["outcome"], bool(failed["fix"])) == ("failed", True)


def test_only_what_changed_is_read_again(shell: Shell, library: Path) -> None:
    """K4: same bytes, nothing happens; new bytes, a new version; gone, told, and removed with --prune."""
    shell.run("corpus", "add", str(library), "--standing", "canonical", "--tag", "shelf")
    assert shell.json("corpus", "add", str(library))["counts"] == {"unchanged": 6}
    written = shell.put("On Fridays the crane rests", "--link", "library/deploys.md")
    (library / "deploys.md").write_text("# Deploys\n\nOne person is enough.\n")
    (library / "plain.txt").unlink()
    done = shell.json("corpus", "add", str(library))
    assert done["counts"] == {"unchanged": 4, "changed": 1, "gone": 1}
    assert "--prune removes them" in shell.run("corpus", "add", str(library))
    shown = shell.json("corpus", "show", "library/deploys.md")
    assert (shown["head"]["version"], shown["head"]["standing"]) == (2, "canonical")
    assert [entry["id"] for entry in shown["entries"]] == [written]
    assert shell.json("get", written)["grounds"]["provenance"][0]["status"] == "changed"
    hit = shell.json("corpus", "search", "one person", "--tag", "shelf")["hits"][0]
    assert hit["version"] == 2
    before = shell.json("corpus", "list")
    assert shell.json("corpus", "add", str(library), "--prune", "--dry-run")["counts"]["gone"] == 1
    assert shell.json("corpus", "list") == before
    assert shell.json("corpus", "add", str(library), "--prune")["counts"]["removed"] == 1
    assert shell.json("corpus", "search", "cellar")["hits"] == []
    assert [v["removed"] for v in shell.json("corpus", "history", "library/plain.txt")["versions"]] == [False, True]
    shell.run("corpus", "remove", "library/deploys.md")
    assert shell.json("get", written)["grounds"]["provenance"][0]["status"] == "vanished"


def test_a_folder_gives_what_belongs_to_it(shell: Shell, tmp_path: Path) -> None:
    """K4: hidden, generated, binary and linked files stay out, and under git those that git ignores."""
    outside = tmp_path / "outside.md"
    outside.write_text("# Outside\n\nNot yours.\n")
    folder = tmp_path / "project"
    for name in ("kept.md", "notes/own.txt", ".hidden.md", ".git-not/a.md", "node_modules/x/readme.md", "secret.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"Text of {name}\n")
    (folder / "picture.dat").write_bytes(b"\0\1\2" * 100)
    (folder / "empty.md").write_text("")
    (folder / "link.md").symlink_to(outside)
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.md")

    def added() -> set[str]:
        return {one["document"] for one in shell.json("corpus", "add", str(folder), "--dry-run")["files"]}

    assert added() == {"project/kept.md", "project/notes/own.txt", "project/secret.md"}
    git(folder, "init")
    (folder / ".gitignore").write_text("secret.md\n")
    assert added() == {"project/kept.md", "project/notes/own.txt"}
    assert shell.json("corpus", "add", str(folder / "secret.md"), "--dry-run")["counts"] == {"added": 1}


def test_a_bad_file_does_not_stop_the_others(shell: Shell, tmp_path: Path) -> None:
    """K4: files made to harm are listed with a fix, nothing of them is added, the rest is, and the exit code is 1."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nThe harbour is open.\n")
    (folder / "bomb.epub").write_bytes(epub({"a.xhtml": page("x" * 4_000_000)}))
    (folder / "nested.html").write_bytes(b"<html>" + b"<div>" * 50_000 + b"x")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.5\nnothing else")
    (folder / "lies.pdf").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    done = shell.json("corpus", "add", str(folder), code=1)
    assert done["counts"] == {"added": 1, "failed": 4}
    failed = {Path(one["location"]).name: one for one in done["files"] if one["outcome"] == "failed"}
    assert set(failed) == {"bomb.epub", "nested.html", "broken.pdf", "lies.pdf"}
    assert all(one["error"] and one["fix"] for one in failed.values())
    assert [one["id"] for one in shell.json("corpus", "list")["documents"]] == ["mixed/good.md"]
    assert "nothing wrong" in shell.run("doctor")


def test_a_run_that_was_killed_is_repeated(shell: Shell, tmp_path: Path) -> None:
    """K4: kill -9 in the middle leaves whole documents, and the next run adds the others alone."""
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(MANY):
        (folder / f"{n:04}.md").write_text(f"# Ship {n}\n\n" + f"Ship number {n} carries grain over the lake. " * 20)
    run = subprocess.Popen([*COMMAND, "corpus", "add", str(folder)], env=shell.environment(), stdout=subprocess.DEVNULL)
    until(lambda: (shell.data / "account" / "memory.db").exists())
    with Lukasa.open(shell.data, embedder="none") as memory:
        world = memory.workspace()
        until(lambda: bool(world.collections()))
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        there = world.collections()["documents"]
        assert 0 < there < MANY
        for head in world.documents(limit=1000):
            assert world.ctx.local.passage_count(head.id) > 0
            assert world.ctx.local.document_sources([head.id])
    done = shell.json("corpus", "add", str(folder))
    assert done["counts"] == {"unchanged": there, "added": MANY - there}
    assert "nothing wrong" in shell.run("doctor")


def test_names_that_meet_are_told_apart(shell: Shell, tmp_path: Path) -> None:
    """K4: two files of one name are two documents, and each keeps its own when it changes."""
    for at in ("a", "b"):
        (tmp_path / at / "docs").mkdir(parents=True)
        (tmp_path / at / "docs" / "index.md").write_text(f"# Index\n\nOf {at}.\n")
        shell.run("corpus", "add", str(tmp_path / at / "docs"))
    first, second = (one["id"] for one in shell.json("corpus", "list")["documents"])
    assert first == "docs/index.md"
    assert second.startswith("docs/index.md~")
    (tmp_path / "b" / "docs" / "index.md").write_text("# Index\n\nOf b, again.\n")
    done = shell.json("corpus", "add", str(tmp_path / "b" / "docs"))
    assert [(one["document"], one["outcome"], one["version"]) for one in done["files"]] == [(second, "changed", 2)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ((), "# no"),
        (("--section", "on fridays"), "Nobody deploys"),
        (("--line", "7"), "Nobody deploys"),
        (("--start", "1"), "Nobody deploys"),
    ],
)
def test_a_document_is_read_by_its_places(shell: Shell, library: Path, where: tuple[str, ...], expected: str) -> None:
    """K4: from the beginning, a section, a line, or further on; a page for what has pages; bounded in size."""
    shell.run("corpus", "add", str(library))
    text = shell.json("corpus", "read", "library/deploys.md", *where)["text"]
    assert text.startswith(expected if where else "Two people.")
    assert shell.json("corpus", "read", "library/manual.pdf", "--page", "2")["text"] == "The winch is oiled weekly."
    error = shell.fails("corpus", "read", "library/manual.pdf", "--page", "9", code=1)
    assert "pages 1 to 2" in error["fix"]
    assert (
        "Deploys › On Fridays" in shell.fails("corpus", "read", "library/deploys.md", "--section", "x", code=1)["fix"]
    )
    cut = shell.json("corpus", "read", "library/deploys.md", "--limit", "5")
    assert cut["text"] == "Two p"


def test_a_long_document_is_read_without_repetition(shell: Shell, tmp_path: Path) -> None:
    """K4: passages overlap; a stretch of them does not, and `next` leads on to the end."""
    text = " ".join(f"Sentence number {n} of the long report ends here." for n in range(600))
    (tmp_path / "long.txt").write_text(text)
    shell.run("corpus", "add", str(tmp_path / "long.txt"))
    parts = [shell.json("corpus", "read", "long.txt", "--limit", "5000")]
    while parts[-1]["next"] is not None:
        parts.append(shell.json("corpus", "read", "long.txt", "--start", str(parts[-1]["next"]), "--limit", "5000"))
    said = " ".join(part["text"] for part in parts)
    assert max(len(part["text"]) for part in parts) <= 5000
    assert all(f"Sentence number {n} of" in said for n in range(600))
    assert len(said) < len(text) * 1.1
