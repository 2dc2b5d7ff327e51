"""How the files of other programs are read: the odd forms that they have in the wild."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lukasa.model.past import PastStatement, words_of
from lukasa.ports import PastTalk
from lukasa.providers.past import FORMATS, PastFiles
from lukasa.providers.past.markdown import page, sections, statements
from lukasa.providers.past.pickled import fields
from tests.helpers.pasts import MADE, chatgpt_chats, point


def said(path: Path) -> list[str]:
    return [one.text for one in PastFiles().read(str(path)) if isinstance(one, PastStatement)]


@pytest.mark.parametrize("name", MADE)
def test_each_format_is_recognised(name: str, tmp_path: Path) -> None:
    """Each fixture is taken for what it is, and for nothing that stands before it in the table."""
    past = MADE[name](tmp_path)
    assert PastFiles().recognise(str(past.path)) == past.format
    assert past.format in {one.name for one in FORMATS}


def test_an_agent_file_may_be_json_in_json(tmp_path: Path) -> None:
    """Some published agent files hold their JSON as a text."""
    path = MADE["letta"](tmp_path).path
    whole = path.read_text()
    path.write_text(json.dumps(whole))
    assert PastFiles().recognise(str(path)) == "letta"
    assert said(path) == ["Her name is Ana.\nShe walks a lot."]


def test_a_line_that_announces_a_list_is_no_statement() -> None:
    """Items keep the line that announces them; code belongs to what stands before it; includes are left out."""
    text = "# A\n\nWhen you test:\n\n- one\n- two\n  more\n\nAlone:\n\n## B\nRun\n```sh\nmake\n```\n@o.md\n\n<!--no-->"
    found = list(statements(text))
    assert [(one.line, one.text, one.lead) for one in found] == [
        (5, "one", "When you test"),
        (6, "two\nmore", "When you test"),
        (9, "Alone:", ""),
        (12, "Run\n```sh\nmake\n```\n@o.md", ""),
    ]
    assert found[-1].headings == ("A", "B")


def test_a_long_page_is_cut_at_its_headings() -> None:
    """A short page stays whole; a long one is cut at headings, and no word is lost."""
    assert [one.text for one in sections("\n\nshort\n")] == ["short"]
    long = "\n\n".join(f"## Part {n}\n\n{'word ' * 150}" for n in range(8))
    found = list(sections(long))
    assert len(found) == 8
    assert " ".join(" ".join(one.text for one in found).split()) == " ".join(long.split())


def test_front_matter_is_read_without_yaml() -> None:
    """Keys, quoted texts and both spellings of lists; everything else stays out, and the body begins at its line."""
    made = page('---\ntitle: "A: b"\ntags: [x, "y"]\nlist:\n- one\n- two\nnested:\n  key: value\n---\nbody')
    assert (made.word("title"), made.words("tags"), made.words("list")) == ("A: b", ["x", "y"], ["one", "two"])
    assert (made.body, made.first) == ("body", 10)


def test_the_branch_that_was_shown_last_counts(tmp_path: Path) -> None:
    """ChatGPT: of a tree of messages, the line to the current one; without a current one, the last leaf."""
    chat = chatgpt_chats()[0]
    for current in ("a2", None):
        chat["current_node"] = current
        (tmp_path / "conversations.json").write_text(json.dumps([chat]))
        talk = next(t for t in PastFiles().read(str(tmp_path)) if isinstance(t, PastTalk))
        spoken = [(piece.role, piece.text) for piece in talk.recording.pieces if not piece.aside]
        assert [role for role, _ in spoken] == ["user", "assistant", "assistant"]
        assert "thrown away" not in str(spoken)


def test_the_words_of_a_value() -> None:
    """LangGraph's values: the text of a known field, however deep, or the JSON itself."""
    assert words_of({"kind": "Memory", "content": {"content": " deep "}}) == "deep"
    assert words_of({"rating": 3}) == '{"rating": 3}'
    assert words_of({}) == words_of(None) == ""


def test_a_pickle_is_read_as_values() -> None:
    """A point of Qdrant's local store gives its fields; any other bytes give none."""
    assert fields(point("q", {"data": "words"}))["payload"] == {"data": "words"}
    for data in (b"", b"\x80", b"\x80\x04N.", b"not a pickle", bytes(range(256))):
        assert fields(data) == {}
