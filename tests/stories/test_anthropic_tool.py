"""Anthropic's memory tool, answered from a workspace: its six commands, its documented texts, and nothing lost."""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lukasa import Authority, Lukasa, Memo, State, Trust, Workspace
from lukasa.anthropic import MemoryTool
from lukasa.model.errors import Conflict, InvalidInput
from lukasa.spec import preset_text

NOTES = "/memories/notes.md"
TODO = "/memories/project/todo.md"
LISTING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"
CONTENT = "Here's the content of {} with line numbers:\n"


class Claude:
    """The model's side: commands as tool_use blocks give them."""

    def __init__(self, world: Workspace) -> None:
        self.tool = MemoryTool(world)

    def __call__(self, command: str, path: str | None = None, **fields: Any) -> str:
        place = {} if path is None else {"path": path}
        return self.tool.call({"command": command, **place, **fields})

    def create(self, path: str, text: str) -> None:
        assert self("create", path, file_text=text).startswith(f"File created successfully at: {path}")

    def text(self, path: str) -> str:
        """A file's text, taken back out of what `view` shows."""
        shown = self("view", path)
        header = CONTENT.format(path)
        assert shown.startswith(header), shown
        return "\n".join(line[7:] for line in shown.removeprefix(header).split("\n"))

    def paths(self, path: str = "/memories") -> list[str]:
        shown = self("view", path)
        assert shown.startswith(LISTING.format(path)), shown
        return [line.split("\t")[1] for line in shown.split("\n")[1:] if "\t" in line][1:]


@pytest.fixture
def agent(world: Workspace) -> Workspace:
    return world.acting(agent="claude")


@pytest.fixture
def claude(agent: Workspace) -> Claude:
    return Claude(agent)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lukasa]:
    """One real store for all the examples of a property."""
    with Lukasa.open(tmp_path_factory.mktemp("disk"), embedder="none") as opened:
        yield opened


def filed(world: Workspace, path: str, tier: str = "workspace") -> Any:
    """The entries that are, or were, the file at a path."""
    name = path.removeprefix("/memories/")
    return [entry for entry in world.entries(tier, everything=True) if entry.path == name]


# View


def test_the_definition(claude: Claude) -> None:
    """B11: what a request must name to give Claude the tool."""
    assert claude.tool.definition() == {"type": "memory_20250818", "name": "memory"}
    assert claude.tool.name == "memory"


def test_an_empty_memory_shows_its_layout(claude: Claude) -> None:
    """B11, M8: before anything is written there are the author's pages and a folder for each tier that is bound."""
    found = claude.paths()
    assert found == [
        "/memories/account/",
        "/memories/named/",
        "/memories/named/SOUL.md",
        "/memories/named/VOICE.md",
        "/memories/workspace/",
    ]
    assert claude.paths("/memories/account") == []


def test_view_of_a_directory(claude: Claude) -> None:
    """B11: sizes, tabs, two levels, folders with a slash, hidden items and node_modules left out."""
    claude.create("/memories/work/a.md", "x" * 1536)
    claude.create("/memories/work/b.md", "x")
    claude.create("/memories/work/deep/er/c.md", "x" * 1024)
    claude.create("/memories/work/.hidden", "x")
    claude.create("/memories/work/node_modules/d.js", "x")
    claude.create("/memories/work/empty.md", "")
    assert claude("view", "/memories/work") == (
        LISTING.format("/memories/work")
        + "2.5K\t/memories/work\n"
        + "1.5K\t/memories/work/a.md\n"
        + "1B\t/memories/work/b.md\n"
        + "1K\t/memories/work/deep/\n"
        + "1K\t/memories/work/deep/er/\n"
        + "0B\t/memories/work/empty.md"
    )
    assert claude.text("/memories/work/.hidden") == "x"
    assert claude("view", "/memories/work/") == claude("view", "/memories/work")


def test_view_of_a_file(claude: Claude) -> None:
    """B11: a header, then each line with its number, six wide, and a tab."""
    claude.create(NOTES, "Hello World\nThis is line two")
    assert claude("view", NOTES) == CONTENT.format(NOTES) + "     1\tHello World\n     2\tThis is line two"


@pytest.mark.parametrize(
    ("lines", "numbers"), [([2, 3], [2, 3]), ([3, -1], [3, 4]), ([0, 1], [1]), ([-5, 1], [1]), ([4, 99], [4])]
)
def test_view_of_some_lines(claude: Claude, lines: list[int], numbers: list[int]) -> None:
    """B11: view_range chooses lines by number, -1 stands for the last, and too much is cut to what is there."""
    claude.create(NOTES, "one\ntwo\nthree\nfour")
    shown = claude("view", NOTES, view_range=lines).split("\n")[1:]
    assert [int(line[:6]) for line in shown] == numbers


@pytest.mark.parametrize("lines", [[5, 9], [3, 2], [1, 0], [1, -2]])
def test_view_of_lines_that_are_not_there(claude: Claude, lines: list[int]) -> None:
    """B11: a range that holds no line says which there are."""
    claude.create(NOTES, "one\ntwo\nthree\nfour")
    assert claude("view", NOTES, view_range=lines) == (
        f"Error: Invalid `view_range` parameter: {lines}. It should be within the range of lines of the file: [1, 4]"
    )


@pytest.mark.parametrize(
    "path", ["/memories/nothing.md", "/memories/workspace/entries/x.md", "/memories/named/NONE.md", "/memories/channel"]
)
def test_view_of_nothing(claude: Claude, path: str) -> None:
    """B11: the documented text for a path that is not there; a tier that is not bound is not there."""
    assert claude("view", path) == f"The path {path} does not exist. Please provide a valid path."


def test_a_file_of_too_many_lines(tmp_path: Path) -> None:
    """B11: the documented text for more than 999,999 lines, where a spec lets a file be that long."""
    spec = preset_text("default").replace("max_chars = 20000", "max_chars = 20000\nmax_file_chars = 2000000")
    with Lukasa.open(tmp_path, embedder="none") as memory:
        claude = Claude(memory.workspace("long", spec=spec))
        claude.create(NOTES, "\n" * 999_999)
        assert claude("view", NOTES) == f"File {NOTES} exceeds maximum line limit of 999,999 lines."
        claude.create(TODO, "\n" * 999_998)
        assert claude("view", TODO, view_range=[999_999, -1]) == CONTENT.format(TODO) + "999999\t"


# Create, and exactness


def test_a_long_file(claude: Claude, agent: Workspace) -> None:
    """B11: a file may be much longer than an entry. It is viewed by part, edited, found by its words, and limited."""
    lines = [f"{number}: the reading of station {number}" for number in range(1, 10_001)]
    claude.create(NOTES, "\n".join(lines))
    assert claude("view", NOTES, view_range=[9_999, 9_999]).endswith(f"\n  9999\t{lines[9_998]}")
    changed = claude("str_replace", NOTES, old_str="station 9000", new_str="the lighthouse")
    assert "  9000\t9000: the reading of the lighthouse" in changed
    claude("insert", NOTES, insert_line=10_000, insert_text="10001: a last line")
    assert claude.text(NOTES).endswith("10000: the reading of station 10000\n10001: a last line\n")
    (hit,) = agent.read("which reading is of the lighthouse?")
    assert hit.entry.path == "notes.md"
    answer = claude("create", TODO, file_text="x" * 1_000_001)
    assert answer.startswith("Error: content")
    assert "1,000,000" in answer or "1000000" in answer


def test_create(claude: Claude) -> None:
    """B11: the documented answers to a new file and to one that exists, as a file or as a folder."""
    assert claude("create", TODO, file_text="- tea\n") == f"File created successfully at: {TODO}"
    for taken in (TODO, "/memories/project", "/memories", "/memories/named", "/memories/account"):
        assert claude("create", taken, file_text="other") == f"Error: File {taken} already exists"
    assert claude.text(TODO) == "- tea\n"


def test_a_file_is_no_folder(claude: Claude) -> None:
    """B11: no file can lie below another file."""
    claude.create(NOTES, "text")
    answer = "Error: /memories/notes.md is a file, not a directory"
    assert claude("create", f"{NOTES}/below.md", file_text="x") == answer
    claude.create(TODO, "x")
    assert claude("rename", old_path=TODO, new_path=f"{NOTES}/below.md") == answer


# What can be stored: no NUL, no lone surrogates. All else must come back as it went in.
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=200)


@settings(max_examples=150)
@example("")
@example("\n")
@example(" \t ")
@example("a\r\nb\r\n")
@example("no newline at the end")
@example("\n\n\nblank lines\n\n")
@example("ok")
@example("Replace the line above with this one")
@example("e\u0301 is not é")
@example("zero\u200bwidth, \u202eright to left, \ufeffmark, \u2028separator, \x0c\x1b[0m")
@example("👩‍👩‍👧 family")
@given(text=STORABLE)
def test_what_is_created_is_what_is_viewed(disk: Lukasa, text: str) -> None:
    """B11: any storable text comes back character by character: also empty, short, hidden or an instruction."""
    claude = Claude(disk.workspace("novel").acting(agent="claude"))
    claude.create(NOTES, text)
    assert claude.text(NOTES) == text
    claude("delete", NOTES)


@pytest.mark.parametrize("text", ["", "ok", " \n", "a\r\nb\r\n", "\ufeffmark\u200b", "👩‍👩‍👧\n", "x" * 20_000])
def test_exactness_on_disk(world: Workspace, claude: Claude, text: str) -> None:
    """B11: the same in a real database, and after a check of everything in it."""
    claude.create(NOTES, text)
    assert claude.text(NOTES) == text
    assert filed(world, NOTES)[0].content == text
    assert world.check() == []


def test_two_files_may_say_the_same(world: Workspace, claude: Claude) -> None:
    """B11, W3: a file is there for its path: equal texts in two files, or in a file and a memory, are all kept."""
    text = "The villain is called Malachar"
    world.put("workspace", text)
    claude.create(NOTES, text)
    claude.create(TODO, text)
    assert (claude.text(NOTES), claude.text(TODO)) == (text, text)
    assert [entry.merged_count for entry in world.entries("workspace")] == [1, 1, 1]
    claude("str_replace", NOTES, old_str="Malachar", new_str="Vexis")
    assert claude.text(TODO) == text


def test_a_memory_neither_merges_with_a_file_nor_retires_it(world: Workspace, claude: Claude) -> None:
    """B11, W3, W4: what is said elsewhere leaves a file alone, and a file leaves memories alone."""
    claude.create(NOTES, "The villain is called Malachar")
    assert world.put("workspace", "The villain is called Malachar").outcome == "stored"
    written = world.put("workspace", "The villain is called Vexis")
    assert [world.get(id).path for id in written.beside] == [None]
    claude.create(TODO, "The villain is called Zor")
    assert claude.text(NOTES) == "The villain is called Malachar"
    assert {entry.content for entry in world.entries("workspace")} == {
        "The villain is called Malachar",
        "The villain is called Vexis",
        "The villain is called Zor",
    }


@pytest.mark.parametrize("text", ["x" * 1_000_001, "nul\x00", "lone \ud800 surrogate"])
def test_text_that_cannot_be_kept(world: Workspace, claude: Claude, text: str) -> None:
    """B11, W5: too long or not text at all is refused in words, and nothing is written."""
    assert claude("create", NOTES, file_text=text).startswith("Error: content h")
    claude.create(TODO, "- tea\n")
    for answer in (
        claude("insert", TODO, insert_line=1, insert_text=text),
        claude("str_replace", TODO, old_str="tea", new_str=text),
    ):
        assert answer.startswith("Error: content h")
    assert claude.text(TODO) == "- tea\n"
    assert filed(world, NOTES) == []


# Edits


def test_str_replace(claude: Claude) -> None:
    """B11: the one occurrence is replaced, and the answer shows the lines around it."""
    claude.create(NOTES, "1\n2\n3\nblue\n5\n6\n7")
    assert claude("str_replace", NOTES, old_str="blue", new_str="green\nred") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\t2\n     3\t3\n     4\tgreen\n     5\tred\n     6\t5\n     7\t6"
    )
    assert claude.text(NOTES) == "1\n2\n3\ngreen\nred\n5\n6\n7"


def test_str_replace_can_empty_a_file(claude: Claude) -> None:
    """B11: an edit may leave nothing of the text."""
    claude.create(NOTES, "blue")
    claude("str_replace", NOTES, old_str="blue", new_str="")
    assert claude.text(NOTES) == ""


def test_str_replace_that_finds_nothing_or_too_much(claude: Claude) -> None:
    """B11: the documented texts for text that is not there, and for text that is there more than once."""
    claude.create(NOTES, "blue\nred\nblue blue")
    assert claude("str_replace", NOTES, old_str="green", new_str="x") == (
        f"No replacement was performed, old_str `green` did not appear verbatim in {NOTES}."
    )
    assert claude("str_replace", NOTES, old_str="blue", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `blue` in lines: 1, 3, 3. "
        "Please ensure it is unique"
    )
    assert claude("str_replace", NOTES, old_str="", new_str="x").startswith("No replacement was performed.")
    assert claude.text(NOTES) == "blue\nred\nblue blue"


@pytest.mark.parametrize("path", ["/memories/none.md", "/memories/project", "/memories", "/memories/named"])
def test_edits_of_what_is_no_file(claude: Claude, path: str) -> None:
    """B11: the documented texts for a file that is not there; a directory is none."""
    claude.create(TODO, "- tea\n")
    missing = f"Error: The path {path} does not exist"
    assert claude("str_replace", path, old_str="a", new_str="b") == f"{missing}. Please provide a valid path."
    assert claude("insert", path, insert_line=0, insert_text="x") == missing


@pytest.mark.parametrize(
    ("before", "line", "added", "after"),
    [
        ("a\nb\n", 0, "x\n", "x\na\nb\n"),
        ("a\nb\n", 1, "x", "a\nx\nb\n"),
        ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
        ("a\nb", 2, "x\n", "a\nb\nx\n"),
        ("", 0, "x", "x\n"),
        ("a\r\nb\r\n", 1, "x\r\n", "a\r\nx\r\nb\r\n"),
        ("a\n\n\n", 1, "x\n\n", "a\nx\n\n\n\n"),
        ("a\x0cb\u2028c\n", 1, "x", "a\x0cb\u2028c\nx\n"),
        ("a\n", 1, "", "a\n\n"),
    ],
)
def test_insert(claude: Claude, before: str, line: int, added: str, after: str) -> None:
    """B11: whole lines are added after a line, and every other character stays as it was."""
    claude.create(NOTES, before)
    assert claude("insert", NOTES, insert_line=line, insert_text=added).startswith(f"The file {NOTES} has been edited.")
    assert claude.text(NOTES) == after


@pytest.mark.parametrize("line", [-1, 3, 10**30])
def test_insert_at_a_line_that_is_not_there(claude: Claude, line: int) -> None:
    """B11: the documented text, with the lines that there are."""
    claude.create(NOTES, "a\nb\n")
    assert claude("insert", NOTES, insert_line=line, insert_text="x") == (
        f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 2]"
    )


# Delete and rename


def test_delete(claude: Claude) -> None:
    """B11: the documented answers, for a file, for a folder with all that is in it, and for nothing."""
    for path in (NOTES, TODO, "/memories/project/deep/plan.md", "/memories/projects.md"):
        claude.create(path, "text")
    assert claude("delete", NOTES) == f"Successfully deleted {NOTES}"
    assert claude("delete", "/memories/project") == "Successfully deleted /memories/project"
    for gone in (NOTES, "/memories/project", TODO):
        assert claude("delete", gone) == f"Error: The path {gone} does not exist"
    assert claude.text("/memories/projects.md") == "text"
    assert claude("delete", "/memories") == "Error: Cannot delete the /memories directory itself"


def test_a_deleted_file_comes_back(world: Workspace, claude: Claude) -> None:
    """B11, W1, X1: delete forgets; the row, its history and its text stay, and the author can restore it."""
    claude.create(NOTES, "first")
    claude("str_replace", NOTES, old_str="first", new_str="second")
    claude("delete", NOTES)
    (entry,) = filed(world, NOTES)
    assert (entry.state, len(world.history(entry.id))) == (State.FORGOTTEN, 3)
    world.restore(entry.id)
    assert claude.text(NOTES) == "second"


def test_a_path_can_be_used_again(world: Workspace, claude: Claude) -> None:
    """B11: after a delete the path is free; the old file then cannot come back over the new one."""
    claude.create(NOTES, "old")
    claude("delete", NOTES)
    claude.create(NOTES, "new")
    gone = next(entry for entry in filed(world, NOTES) if entry.state is State.FORGOTTEN)
    with pytest.raises(Conflict, match="path"):
        world.restore(gone.id)
    assert claude.text(NOTES) == "new"


def test_rename(world: Workspace, claude: Claude) -> None:
    """B11: the documented answer; the entry stays the one it is, with its history."""
    claude.create(NOTES, "text")
    (before,) = filed(world, NOTES)
    final = "/memories/archive/final.md"
    assert claude("rename", old_path=NOTES, new_path=final) == f"Successfully renamed {NOTES} to {final}"
    (after,) = filed(world, final)
    assert (after.id, after.version, claude.text(final)) == (before.id, 2, "text")
    assert [version.entry.path for version in world.history(after.id)] == ["notes.md", "archive/final.md"]
    assert claude("view", NOTES) == f"The path {NOTES} does not exist. Please provide a valid path."


def test_rename_of_a_folder(claude: Claude) -> None:
    """B11: everything in a folder moves with it, and nothing beside it."""
    for path in (TODO, "/memories/project/deep/plan.md", "/memories/project2.md"):
        claude.create(path, path)
    claude("rename", old_path="/memories/project", new_path="/memories/done/2026")
    assert claude.text("/memories/done/2026/todo.md") == TODO
    assert claude.text("/memories/done/2026/deep/plan.md") == "/memories/project/deep/plan.md"
    assert claude.text("/memories/project2.md") == "/memories/project2.md"


def test_rename_that_cannot_be(claude: Claude) -> None:
    """B11: the documented texts; nothing is ever written over."""
    claude.create(NOTES, "notes")
    claude.create(TODO, "todo")
    none = "/memories/none.md"
    assert claude("rename", old_path=none, new_path="/memories/x") == f"Error: The path {none} does not exist"
    for taken in (TODO, "/memories/project", NOTES, "/memories", "/memories/account"):
        answer = claude("rename", old_path=NOTES, new_path=taken)
        assert answer == f"Error: The destination {taken} already exists"
    inside = claude("rename", old_path="/memories/project", new_path="/memories/project/sub")
    assert inside == "Error: The destination /memories/project/sub lies inside /memories/project"
    assert (claude.text(NOTES), claude.text(TODO)) == ("notes", "todo")


def test_rename_into_another_tier(world: Workspace, claude: Claude) -> None:
    """B11, M1: an entry never leaves its tier: a new file derives from the old one, which is forgotten."""
    claude.create(NOTES, "text")
    (old,) = filed(world, NOTES)
    moved = "/memories/account/notes.md"
    assert claude("rename", old_path=NOTES, new_path=moved) == f"Successfully renamed {NOTES} to {moved}"
    (new,) = filed(world, moved, tier="account")
    assert (new.content, new.derived_from, new.trust) == ("text", (old.id,), Trust.AGENT)
    assert world.get(old.id).state is State.FORGOTTEN


@pytest.mark.parametrize("path", ["/memories/named", "/memories/workspace", "/memories/account"])
def test_the_layout_stays(claude: Claude, path: str) -> None:
    """B11: the folders that memory itself has can be neither deleted nor moved."""
    answer = f"Error: {path} is a fixed folder and cannot be moved or deleted"
    assert claude("delete", path) == answer
    assert claude("rename", old_path=path, new_path="/memories/x") == answer


# What is not the agent's


def every_write(path: str) -> list[dict[str, object]]:
    return [
        {"command": "create", "path": path, "file_text": "mine"},
        {"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "mine"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/mine.md"},
        {"command": "rename", "old_path": NOTES, "new_path": path},
    ]


@pytest.mark.parametrize("path", ["/memories/named/VOICE.md", "/memories/named/NEW.md", "/memories/named/a/b.md"])
def test_named_entries_are_read_only(world: Workspace, claude: Claude, path: str) -> None:
    """B11, M8: the author's pages are read whole, and no command writes, moves or removes them."""
    world.edit_named("VOICE", "Speak plainly.\n")
    claude.create(NOTES, "notes")
    for command in every_write(path):
        assert claude.tool.call(command).startswith(f"Error: {path} is read-only: the pages in /memories/named are")
    assert claude.text("/memories/named/VOICE.md") == "Speak plainly.\n"
    assert world.get_named("VOICE").version == 2
    assert claude.text(NOTES) == "notes"


def test_other_entries_are_read_only(world: Workspace, claude: Claude) -> None:
    """B11: what is remembered otherwise is seen by its id, in its tier, and changed by other means."""
    id = world.put("workspace", "The villain is called Malachar").id
    path = f"/memories/workspace/entries/{id}.md"
    claude.create(NOTES, "notes")
    assert claude.paths("/memories/workspace/entries") == [path]
    assert "/memories/workspace/entries/" in claude.paths()
    assert claude.text(path) == "The villain is called Malachar"
    for command in every_write(path):
        assert claude.tool.call(command).startswith(f"Error: {path} is read-only: ")
    assert world.get(id).version == 1


def test_an_entry_is_seen_only_where_it_is(world: Workspace, claude: Claude) -> None:
    """B11, M1, M3, M4: not in another tier, not once it is forgotten or held, and not if it is another agent's."""
    id = world.put("workspace", "The villain is called Malachar").id
    assert claude("view", f"/memories/account/entries/{id}.md").endswith("Please provide a valid path.")
    world.forget(id)
    private = world.acting(agent="rival").put("workspace", "A plan of the rival's own", owner="rival").id
    claude.create(NOTES, "a file is no such entry")
    (file,) = filed(world, NOTES)
    for hidden in (id, private, file.id, file.id.upper()):
        assert claude("view", f"/memories/workspace/entries/{hidden}.md").endswith("Please provide a valid path.")
    assert claude.paths("/memories/workspace/entries") == []


def test_a_long_list_of_entries_is_cut(world: Workspace, claude: Claude) -> None:
    """B11: a listing is bounded and says so; what is not listed is still there by its id."""
    written = world.put_many("workspace", [Memo(f"Fact number {i} of {i * 7919}", kind="episodic") for i in range(201)])
    shown = claude("view", "/memories/workspace")
    assert shown.endswith("Only the newest 200 of /memories/workspace/entries are listed.")
    assert len(claude.paths("/memories/workspace/entries")) == 200
    assert claude.text(f"/memories/workspace/entries/{written[0].id}.md") == "Fact number 0 of 0"


# Tiers and isolation


def test_files_live_in_tiers(world: Workspace, claude: Claude) -> None:
    """B11, M1: a tier's folder is that tier; what is under none of them is the workspace's."""
    for path in (NOTES, "/memories/workspace/notes.md", "/memories/account/notes.md"):
        claude.create(path, path)
    assert {entry.content for entry in world.entries("workspace")} == {NOTES, "/memories/workspace/notes.md"}
    assert [entry.content for entry in world.entries("account")] == ["/memories/account/notes.md"]
    assert claude.text(NOTES) == NOTES


def test_conversations_and_channels_have_folders_when_bound(world: Workspace, agent: Workspace) -> None:
    """B11, M1: a conversation's files are seen in that conversation alone, and go with it."""
    talk = world.start()
    here, outside = Claude(agent.at(conversation=talk.ref_code)), Claude(agent)
    path = "/memories/conversation/plan.md"
    here.create(path, "text")
    here.create("/memories/channel/topic.md", "text")
    assert here.text(path) == "text"
    assert {"/memories/conversation/", "/memories/channel/"} <= set(here.paths())
    refusal = f"Error: {path} belongs to a tier of memory that is not open here. Use another path"
    assert outside("create", path, file_text="x") == refusal
    assert Claude(agent.at(conversation=world.start().ref_code))("view", path).endswith("valid path.")
    world.end(talk.ref_code)
    assert here("view", path) == f"The path {path} does not exist. Please provide a valid path."


def test_workspaces_do_not_see_one_another(memory: Lukasa) -> None:
    """B11, X3: a file of one workspace is not in another; an account's file is in both."""
    one, two = (Claude(memory.workspace(name).acting(agent="claude")) for name in ("novel", "garden"))
    one.create(NOTES, "of the novel")
    one.create("/memories/account/me.md", "of the person")
    assert two("view", NOTES) == f"The path {NOTES} does not exist. Please provide a valid path."
    two.create(NOTES, "of the garden")
    assert (one.text(NOTES), two.text("/memories/account/me.md")) == ("of the novel", "of the person")


def test_a_spec_without_a_workspace_tier(memory: Lukasa) -> None:
    """B11: where tiers are called otherwise, files go to the lasting one; where none is bound, they are refused."""
    world = memory.workspace("case", preset="anchored")
    refusal = f"Error: {NOTES} belongs to a tier of memory that is not open here. Use another path"
    assert Claude(world)("create", NOTES, file_text="text") == refusal
    bound = world.at(org_id="acme", domain_id="billing")
    claude = Claude(bound)
    claude.create(NOTES, "text")
    assert claude.text(NOTES) == "text"
    assert [entry.path for entry in bound.entries("persistent")] == ["notes.md"]


# Paths


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../secrets.md",
        "/memories/a/../../etc/passwd",
        "/memories/..",
        "/memories/a\\..\\b",
        "/memories/%2e%2e%2fetc",
        "/memories/%252e%252e/etc",
        "/memories/a%00.md",
        "/memories/a\x00.md",
    ],
)
def test_traversal_is_refused(claude: Claude, path: str) -> None:
    """B11: nothing that could lead out of /memories is even looked at, by any command."""
    claude.create(NOTES, "notes")
    view: dict[str, object] = {"command": "view", "path": path}
    for command in [view, *every_write(path)]:
        answer = claude.tool.call(command)
        assert answer.startswith("Error: Path /memories/")
        assert answer.endswith("would escape /memories directory")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "notes.md", "", "/", "memories/a", "/memoriesx/a", "../memories", "/M"]
)
def test_paths_start_at_the_root(claude: Claude, path: str) -> None:
    """B11: a path elsewhere is refused with the text that the SDK gives."""
    for command in ({"command": "view", "path": path}, *every_write(path)):
        assert claude.tool.call(command) in (
            f"Error: Path must start with /memories, got: {path}",
            f"Error: The path {NOTES} does not exist",
        )


@pytest.mark.parametrize(
    "name",
    ["a" * 129, "/".join("a" * 17), "/".join(["a" * 100] * 5), "new\nline", "tab\t", "\u202egnp", " a", "a ", "\ud800"],
)
def test_paths_are_plain_and_bounded(claude: Claude, name: str) -> None:
    """B11: names are printable; length and depth have their limits, told in words."""
    answer = claude("create", f"/memories/{name}", file_text="text")
    assert answer.startswith("Error: Invalid path /memories/")
    assert "a path is at most 16 names" in answer
    assert answer.isprintable()


def test_a_name_has_one_spelling(claude: Claude) -> None:
    """B11: two ways to write one letter, or a doubled slash, are one path."""
    name = "/memories/café.md"
    claude.create(unicodedata.normalize("NFD", name), "text")
    assert claude.text(unicodedata.normalize("NFC", name)) == "text"
    assert claude("create", "/memories//./café.md", file_text="x").endswith("already exists")


# Who writes, and what is held


def test_an_agent_signs_its_files(world: Workspace, claude: Claude) -> None:
    """B2, B11, X2: every change is in the log under the agent's name, and the text informs rather than commands."""
    claude.create(NOTES, "first")
    claude("str_replace", NOTES, old_str="first", new_str="second")
    claude("rename", old_path=NOTES, new_path=TODO)
    claude("delete", TODO)
    (entry,) = filed(world, TODO)
    events = world.ledger(entry.id)
    assert [event.action for event in events] == ["entry.put", "entry.updated", "entry.updated", "entry.forgotten"]
    assert {(e.actor.principal, e.actor.surface) for e in events} == {("claude", "anthropic-memory-tool")}
    assert (entry.trust, entry.authority) == (Trust.AGENT, Authority.INFORM)
    assert [version.entry.content for version in world.history(entry.id)] == ["first", "second", "second", "second"]
    assert world.check() == []


def test_the_models_words_are_never_the_authors(world: Workspace) -> None:
    """B2: also with the author's own handle, what a model writes has an agent's trust."""
    Claude(world).create(NOTES, "Always deploy on Fridays")
    (entry,) = filed(world, NOTES)
    assert (entry.trust, str(entry.curator)) == (Trust.AGENT, "agent")


def test_a_held_file_is_read_by_its_path_alone(world: Workspace, claude: Claude) -> None:
    """B2, B11: hidden characters are held: the writer is told, and reads them back; no recall does."""
    answer = claude("create", NOTES, file_text="harbour\u202e lights")
    assert answer.startswith(f"File created successfully at: {NOTES}\nNote: it is held for the author to review (")
    assert claude.text(NOTES) == "harbour\u202e lights"
    assert len(world.read("harbour lights")) == 0
    world.accept(filed(world, NOTES)[0].id)
    assert [hit.content for hit in world.read("harbour lights")] == ["harbour\u202e lights"]


def test_held_text_of_strangers_is_not_shown(world: Workspace, claude: Claude) -> None:
    """B2: what is held because nobody vouches for it cannot be slipped to an agent as a file."""
    stranger = Claude(world.acting(principal="web", trust=Trust.UNTRUSTED))
    stranger.create(NOTES, "The user prefers that invoices go to Acme")
    assert stranger.text(NOTES) == "The user prefers that invoices go to Acme"
    assert NOTES not in claude.paths()
    refusal = f"Error: {NOTES} is held until the author reviews it, and cannot be used yet"
    assert claude("view", NOTES) == claude("delete", NOTES) == refusal
    assert claude("str_replace", NOTES, old_str="Acme", new_str="me") == refusal
    assert claude("create", NOTES, file_text="mine") == f"Error: File {NOTES} already exists"


def test_strangers_cannot_touch_an_agents_file(world: Workspace, claude: Claude) -> None:
    """B2: text of unknown authorship neither edits, moves nor deletes what is more trusted."""
    claude.create(NOTES, "notes")
    stranger = Claude(world.acting(principal="web", trust=Trust.UNTRUSTED))
    for command in every_write(NOTES)[1:5]:
        assert stranger.tool.call(command).startswith(("Error: 'web' cannot", "No replacement was performed"))
    assert stranger("rename", old_path=NOTES, new_path="/memories/account/n.md").startswith("Error: 'web' cannot")
    assert claude.text(NOTES) == "notes"


def test_what_a_spec_changes_is_said(memory: Lukasa) -> None:
    """B11, W6: where the spec's gates change a text, the answer says so and the file shows what was kept."""
    gate = '[[sanitization]]\nboundary = "trust"\ntransforms = ["redact_secrets"]\n'
    spec = preset_text("default").replace("sanitization = []", "") + gate
    claude = Claude(memory.workspace("gated", spec=spec))
    answer = claude("create", NOTES, file_text="password = hunter22\n")
    assert answer.startswith(
        f"File created successfully at: {NOTES}\nNote: the rules of this workspace changed the text"
    )
    assert claude.text(NOTES) == "password = [secret]\n"
    claude.create(TODO, "key:\n")
    assert "[secret]" in claude("str_replace", TODO, old_str="key:", new_str="token: abcd1234efgh")


def test_a_copy_of_a_page_is_held_or_refused(memory: Lukasa) -> None:
    """B11, W5: a file is no way around the guard: a copy of canonical text is held, or refused, as the spec says."""
    body = "The old harbour of Veyra had three lighthouses, and only the eldest was still lit at night."
    for preset, answer in (("default", "File created successfully"), ("tiered", "Error: this text repeats")):
        world = memory.workspace(preset, preset=preset)
        world.save_document("ch1", body)
        assert Claude(world)("create", NOTES, file_text=body).startswith(answer)
        assert len(world.read("harbour of Veyra lighthouses")) == 0


# Found, counted, shared


def test_files_are_found(world: Workspace, claude: Claude) -> None:
    """B11, R1: a file is memory: read finds it by its words and by its name, and a context shows it."""
    claude.create("/memories/recipes/pancakes.md", "Flour, milk, eggs. Rest the batter for an hour.\n")
    for query in ("how long to rest the batter", "pancakes"):
        assert [hit.entry.path for hit in world.read(query)] == ["recipes/pancakes.md"]
    assert "Rest the batter" in str(world.context("rest the batter"))
    claude("str_replace", "/memories/recipes/pancakes.md", old_str="batter", new_str="dough")
    assert [hit.content for hit in world.read("dough")] == ["Flour, milk, eggs. Rest the dough for an hour.\n"]


def test_an_empty_file_is_no_answer(world: Workspace, claude: Claude) -> None:
    """B11, R1: a file that says nothing is listed and viewed, and never recalled."""
    for name, text in (("empty", ""), ("blank", " \n")):
        claude.create(f"/memories/{name}.md", text)
    for query in ("empty", "blank", "harbour", ""):
        assert len(world.read(query)) == 0
    assert "[tier=workspace" not in str(world.context("empty"))


def test_a_view_counts(world: Workspace, claude: Claude) -> None:
    """D6: looking into a file is a retrieval of it, and looking at a folder is none."""
    claude.create(NOTES, "text")
    claude("view", "/memories")
    claude("view", NOTES)
    access = world.standing(filed(world, NOTES)[0].id).access
    assert access is not None
    assert access.count == 1


def test_files_of_the_author(world: Workspace, claude: Claude) -> None:
    """B11, U1: a host can file something itself, and edit a file as any entry; paths are checked there too."""
    (written,) = world.put_many("workspace", [Memo("", path="briefing.md")])
    assert claude.text("/memories/briefing.md") == ""
    world.update(written.id, content="ok")
    assert claude.text("/memories/briefing.md") == "ok"
    with pytest.raises(Conflict):
        world.put_many("workspace", [Memo("again", path="briefing.md")])
    with pytest.raises(InvalidInput):
        world.put_many("workspace", [Memo("text", path="../briefing.md")])


def test_files_outlast_the_process(tmp_path: Path) -> None:
    """B11: a new process sees the files of the one before it."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        Claude(memory.workspace("novel")).create(NOTES, "text\r\n")
    with Lukasa.open(tmp_path, embedder="none") as memory:
        assert Claude(memory.workspace("novel")).text(NOTES) == "text\r\n"


# Threads


def together(work: Callable[[int], str], times: int) -> list[str]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, range(times)))


def until_done(attempt: Callable[[], str]) -> str:
    """As a model does: an edit that met another one is tried again."""
    while (answer := attempt()).startswith("Error: The memory changed"):
        pass
    return answer


def test_edits_at_the_same_time_lose_nothing(claude: Claude) -> None:
    """B11: many threads edit one file: each edit is applied to what the others made of it."""
    claude.create(NOTES, "".join(f"[{i}]\n" for i in range(20)))

    def edit(i: int) -> str:
        until_done(lambda: claude("insert", NOTES, insert_line=0, insert_text=f"line {i}"))
        return until_done(lambda: claude("str_replace", NOTES, old_str=f"[{i}]", new_str=f"done {i}"))

    assert all(answer.startswith("The memory file has been edited.") for answer in together(edit, 20))
    lines = claude.text(NOTES).split("\n")
    assert sorted(lines) == sorted(["", *(f"line {i}" for i in range(20)), *(f"done {i}" for i in range(20))])


def test_of_many_creators_one_wins(world: Workspace, claude: Claude) -> None:
    """B11: one path, one file: the others are told, and nobody's text is overwritten."""
    answers = together(lambda i: claude("create", NOTES, file_text=f"text {i}"), 16)
    (winner,) = [i for i, answer in enumerate(answers) if answer.startswith("File created")]
    assert set(answers) - {answers[winner]} == {f"Error: File {NOTES} already exists"}
    assert claude.text(NOTES) == f"text {winner}"
    assert len(filed(world, NOTES)) == 1


def test_of_many_movers_one_wins(world: Workspace, claude: Claude) -> None:
    """B11: a file that is moved by many at once is in one place afterwards, and whole."""
    claude.create(NOTES, "text")
    answers = together(lambda i: claude("rename", old_path=NOTES, new_path=f"/memories/to/{i}.md"), 16)
    assert sum(answer.startswith("Successfully renamed") for answer in answers) == 1
    assert len(claude.paths("/memories/to")) == 1
    assert [entry.content for entry in world.entries("workspace")] == ["text"]


# Nonsense


@pytest.mark.parametrize(
    "input",
    [
        None,
        [],
        "view",
        7,
        {},
        {"command": None},
        {"command": "format"},
        {"command": ["view"]},
        {"command": "_view", "path": "/memories"},
        {"command": "x" * 10_000},
        {"command": "view\u202e"},
        {"path": "/memories"},
    ],
)
def test_unknown_commands(claude: Claude, input: object) -> None:
    """B11, W9: whatever is called, the answer is text that names the commands."""
    answer = claude.tool.call(input)
    assert answer.startswith("Error: Unknown command: ")
    assert answer.endswith(". Use one of: view, create, str_replace, insert, delete, rename")
    assert len(answer) < 400


@pytest.mark.parametrize("command", every_write(NOTES), ids=lambda c: f"{c['command']}-{len(str(c))}")
def test_wrong_fields(claude: Claude, command: dict[str, object]) -> None:
    """B11, W9: a missing field or one of a wrong type is named in the answer, and nothing is written."""
    claude.create(NOTES, "a\n")
    wrong = [None, 1.5, True, b"/memories", ["/memories"], {"path": 1}, object()]
    for field, value in product(set(command) - {"command"}, wrong):
        answer = claude.tool.call({**command, field: value})
        assert answer.startswith((f"Error: Missing required parameter `{field}`", f"Error: Invalid `{field}`"))
    assert claude.text(NOTES) == "a\n"


@pytest.mark.parametrize("lines", [7, "1,2", [1], [1, 2, 3], ["1", "2"], [1.0, 2.0], [True, 2], {1: 2}, [None, None]])
def test_wrong_ranges(claude: Claude, lines: object) -> None:
    """B11, W9: a range is two whole numbers."""
    claude.create(NOTES, "text")
    assert claude("view", NOTES, view_range=lines).startswith("Error: Invalid `view_range` parameter: it should be")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PATHS = st.sampled_from(
    ["/memories", NOTES, TODO, "/memories/named/VOICE.md", "/memories/account", "/memories/project"]
)
FIELDS = "path file_text old_str new_str insert_line insert_text old_path new_path view_range".split()
COMMANDS = st.sampled_from("view create str_replace insert delete rename".split())


@settings(max_examples=200)
@given(data=st.lists(st.tuples(COMMANDS, st.dictionaries(st.sampled_from(FIELDS), PATHS | JSON)), max_size=8))
def test_any_input_gets_an_answer(data: list[tuple[str, dict[str, Any]]]) -> None:
    """B11, W9: whatever JSON a model sends, in whatever order, it gets text back, and memory stays sound."""
    with Lukasa.open(tempfile.gettempdir(), embedder="none", in_memory=True) as memory:
        world = memory.workspace("novel")
        claude = Claude(world)
        for command, fields in data:
            answer = claude.tool.call({"command": command, **fields})
            assert answer
            answer.encode("utf-8")
        assert world.check() == []


def test_command_objects(claude: Claude) -> None:
    """B11: the methods take the SDK's command objects as well as plain mappings, and never raise."""
    made = claude.tool.create(SimpleNamespace(command="create", path=NOTES, file_text="one\ntwo\n"))
    assert made == f"File created successfully at: {NOTES}"
    assert claude.tool.view(SimpleNamespace(command="view", path=NOTES, view_range=[2, 2])).endswith("\n     2\ttwo")
    assert "     1\t1" in claude.tool.str_replace({"path": NOTES, "old_str": "one", "new_str": "1"})
    assert claude.tool.insert({"path": NOTES, "insert_line": 0, "insert_text": "0"}).endswith("has been edited.")
    assert claude.tool.rename({"old_path": NOTES, "new_path": TODO}).startswith("Successfully renamed")
    assert claude.tool.delete(SimpleNamespace(path=TODO)) == f"Successfully deleted {TODO}"
    assert claude.tool.delete(SimpleNamespace()) == "Error: Missing required parameter `path`"
