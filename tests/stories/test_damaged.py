"""A bit that flips in the file is seen where its text would be read: nothing shows a text that nobody wrote."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.anthropic import MemoryTool
from lukasa.model.errors import Damaged
from lukasa.service.entries import filed_entries
from lukasa.service.workspace import Workspace
from tests.helpers.cli import Shell
from tests.helpers.server import running

TEXT, OTHER = "The archive has four floors", "The archive opens at nine"


def places(file: Path, text: str) -> list[int]:
    """Where a text is in the file of a closed store."""
    data, found = file.read_bytes(), []
    at = data.find(text.encode())
    while at >= 0:
        found.append(at)
        at = data.find(text.encode(), at + 1)
    return found


def flip(file: Path, at: int, bit: int = 0x01) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= bit
    file.write_bytes(bytes(data))


def written(folder: Path, write: Callable[[Workspace], object]) -> Path:
    """The file of a workspace in which something was written and then closed."""
    with Lukasa.open(folder, embedder="none") as memory:
        world = memory.workspace("novel")
        write(world)
        place = memory.folder(world)
    assert place is not None
    return place / "memory.db"


def attempted(ask: Callable[[], str]) -> str | None:
    """The answer; None if the error says that what was asked for is damaged, and names the next step."""
    try:
        return ask()
    except Damaged as error:
        return None if "lukasa doctor" in error.fix else error.fix


@pytest.mark.parametrize("bit", [0x01, 0x80])
@pytest.mark.parametrize("place", [0, 1])
def test_a_flipped_bit_is_never_served(tmp_path: Path, place: int, bit: int) -> None:
    """An entry is in the file twice, in its row and its history: whichever is altered, no surface shows that text."""
    ids: list[str] = []

    def write(world: Workspace) -> None:
        ids.extend(world.put("workspace", text).id for text in (TEXT, OTHER))

    file = written(tmp_path, write)
    found = places(file, TEXT)
    assert len(found) == 2
    flip(file, found[place] + len(TEXT) - 1, bit)
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        seen = ""
        recall = world.read("How many floors does the archive have?")
        seen += " ".join(hit.content for hit in recall) + str(world.context("archive floors"))
        seen += " ".join(entry.content for entry in world.entries("workspace"))
        told = [note for note in recall.notes if "damaged" in note]
        got = attempted(lambda: world.get(ids[0]).content)
        seen += got or ""
        damaged = got is None
        history = [version.entry for version in world.history(ids[0])]
        seen += " ".join(entry.content for entry in history)
        assert damaged is bool(told) is any(entry.damaged for entry in world.entries("workspace"))
        assert damaged is not history[0].damaged
        assert seen.count(TEXT[:-1]) == seen.count(TEXT)
        assert OTHER in [hit.content for hit in recall]
        assert [finding.subject for finding in world.check() if finding.what in ("content", "versions")] == [ids[0]]


def test_the_repair_puts_back_what_the_history_still_holds(tmp_path: Path) -> None:
    """A row that was altered is mended from its history, a page from its versions; the store is sound again."""
    ids: list[str] = []

    def write(world: Workspace) -> None:
        ids.append(world.put("workspace", TEXT).id)
        world.edit_named("VOICE", f"Speak plainly. {OTHER}")

    file = written(tmp_path, write)
    flip(file, next(at for at in places(file, TEXT) if in_row(file, ids[0], at)))
    flip(file, places(file, OTHER)[0])
    shell = Shell(tmp_path, {"LUKASA_EMBEDDER": "none", "LUKASA_WORKSPACE": "novel"})
    assert shell.fails("get", ids[0], code=1)["code"] == "damaged"
    assert "lukasa doctor" in " ".join(shell.json("read", "archive floors")["notes"])
    assert shell.call("doctor").exit_code == 3
    assert shell.call("doctor", "--repair").exit_code == 0
    assert TEXT in shell.run("get", ids[0])
    assert OTHER in shell.run("named", "show", "VOICE")
    assert shell.call("doctor").exit_code == 0


def in_row(file: Path, id: str, at: int) -> bool:
    """Whether a place of the file is in the row of an entry, rather than in its history, which begins with its id."""
    data = file.read_bytes()
    return f'["{id}"'.encode() not in data[max(0, at - 400) : at]


def test_a_damaged_page_is_left_out_and_named(tmp_path: Path) -> None:
    """A context goes on without a damaged page and says so; asking for the page, or its document, is an error."""

    def write(world: Workspace) -> None:
        world.edit_named("VOICE", f"Speak plainly. {TEXT}")
        world.save_document("guide", f"A guide. {OTHER}")

    file = written(tmp_path, write)
    for text in (TEXT, OTHER):
        for at in places(file, text):
            flip(file, at)
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        context = world.context("archive")
        assert TEXT[1:] not in str(context)
        assert any("VOICE is damaged" in note for note in context.notes)
        with pytest.raises(Damaged, match="page VOICE"):
            world.get_named("VOICE")
        with pytest.raises(Damaged, match="document 'guide'"):
            world.get_document("guide")
        assert all(TEXT[1:] not in page.body for page in (*world.named(), *world.named_history("VOICE")))
        assert {finding.subject for finding in world.check()} == {"VOICE", "guide", "guide#0"}


def test_nothing_can_vouch_for_an_altered_text(tmp_path: Path) -> None:
    """An altered entry cannot be changed, moved or undone into a version that the log would vouch for."""
    ids: list[str] = []
    file = written(tmp_path, lambda world: ids.append(world.put("workspace", TEXT).id))
    flip(file, next(at for at in places(file, TEXT) if in_row(file, ids[0], at)))
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        head = world.ctx.local.head()
        for change in (
            lambda: world.update(ids[0], importance=0.9),
            lambda: world.forget(ids[0]),
            lambda: world.undo(ids[0]),
        ):
            with pytest.raises(Damaged):
                change()
        assert world.ctx.local.head() == head


def test_a_server_says_damaged(tmp_path: Path) -> None:
    """Over HTTP a damaged entry is an error of its own, a list marks it, and other entries are served as ever."""
    ids: list[str] = []

    def write(world: Workspace) -> None:
        ids.extend(world.put("workspace", text).id for text in (TEXT, OTHER))

    file = written(tmp_path, write)
    flip(file, next(at for at in places(file, TEXT) if in_row(file, ids[0], at)))
    with Lukasa.open(tmp_path, embedder="none") as memory, running(memory) as server:
        client = server.granted("read")
        gone = client.get(f"/v1/workspaces/novel/entries/{ids[0]}")
        assert gone.status == 500
        assert gone.json["type"] == "damaged"
        assert client.get(f"/v1/workspaces/novel/entries/{ids[1]}").json["content"] == OTHER
        listed = client.get("/v1/workspaces/novel/entries?tier=workspace").json["entries"]
        assert [one["content"].startswith("[damaged") for one in listed] == [False, True]


def test_what_asks_no_question_says_so_too(tmp_path: Path) -> None:
    """The newest entries, a read of an earlier day and a list of files name the damage; a file of it is an error."""
    ids: list[str] = []

    def write(world: Workspace) -> None:
        ids.append(world.put("workspace", TEXT).id)
        made = filed_entries.create(world.ctx, "workspace", "notes.md", OTHER)
        ids.append(made.id or "")

    file = written(tmp_path, write)
    flip(file, next(at for at in places(file, TEXT) if in_row(file, ids[0], at)))
    flip(file, next(at for at in places(file, OTHER) if in_row(file, ids[1], at)))
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.workspace("novel")
        for recall in (world.read(""), world.read("archive", as_of=world.ctx.now + timedelta(days=1))):
            assert any("damaged" in note for note in recall.notes)
            assert all(TEXT[1:] not in hit.content for hit in recall)
        tool = MemoryTool(world)
        assert "notes.md" in tool.call({"command": "view", "path": "/memories"})
        said = tool.call({"command": "view", "path": "/memories/notes.md"})
        assert said.startswith("Error")
        assert "damaged" in said
        with pytest.raises(Damaged):
            world.put("workspace", world.entries("workspace")[0].content)


def test_a_message_that_was_altered_is_an_error(tmp_path: Path) -> None:
    """A message of a session is compared with its hash: no other words are shown or quoted as what was said."""
    log = tmp_path / "talk.txt"
    log.write_text(f"user: {TEXT}\nassistant: Noted.\n")
    keys: list[str] = []
    file = written(tmp_path / "data", lambda world: keys.append(world.observe(log).transcript.key))
    for at in places(file, TEXT):
        flip(file, at)
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        world = memory.workspace("novel")
        with pytest.raises(Damaged):
            world.said(keys[0])
        with pytest.raises(Damaged):
            world.search_transcripts("floors")
        assert {finding.what for finding in world.check()} == {"content"}


def test_a_damaged_document_leaves_the_inbox_readable(tmp_path: Path) -> None:
    """K5: what was submitted to it says so, and the other submissions can be decided."""
    text = "The archive guide has nine chapters"

    def write(world: Workspace) -> None:
        world.save_document("guide", f"# Guide\n\n{text}.\n")
        memory = world.put("workspace", TEXT).id
        for document in ("guide", "floors"):
            world.submit(document, memories=[memory])

    file = written(tmp_path / "data", write)
    for at in places(file, text):
        flip(file, at)
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        world = memory.existing("novel")
        first, second = world.inbox().submissions
        assert "damaged" in first.trouble
        with pytest.raises(Damaged):
            world.approve(first.submission.id)
        assert world.approve(second.submission.id).outcome == "accepted"
