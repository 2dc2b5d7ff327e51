"""Reading what models say: event streams cut anywhere, thoughts, half letters, and arguments in every state."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.providers.chat.reply_builder import VisibleText, read_arguments, tidy, without_stray_thought
from lukasa.providers.chat.wire import EventStream, clean

# --- events --------------------------------------------------------------------------------------------------

STREAM = (
    "\ufeff: comment\r\n\r\nevent: x\r\ndata: {\"a\": \"é\"}\r\n\r\nid: 7\ndata:two\ndata:  lines\n\n"
    "retry: 5\n\ndata: 😀\r\rdata\n\n: keep-alive\ndata: last"
)  # fmt: skip
EVENTS = ['{"a": "é"}', "two\n lines", "😀", "last"]


def events(chunks: list[bytes]) -> list[str]:
    stream = EventStream()
    return [data for chunk in chunks for data in stream.feed(chunk)] + list(stream.finish())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.lists(st.integers(0, 1000)))
def test_events_do_not_depend_on_the_chunks(places: list[int]) -> None:
    """T05: lines, line ends and letters that arrive in halves are put together."""
    assert events(cut(STREAM.encode(), places)) == EVENTS


def test_events_byte_by_byte() -> None:
    """T05: the smallest pieces there are."""
    assert events([bytes([byte]) for byte in STREAM.encode()]) == EVENTS


def test_done_ends_the_stream() -> None:
    """T05: after [DONE] nothing is read."""
    stream = EventStream()
    assert list(stream.feed(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n")) == ["1"]
    assert stream.done


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes) -> None:
    """T05: garbage gives some events or none, and no error."""
    assert all(isinstance(event, str) for event in events([data]))


# --- text ----------------------------------------------------------------------------------------------------


def visible(pieces: list[str]) -> str:
    filter = VisibleText()
    shown = "".join([*(filter.feed(piece) for piece in pieces), filter.finish()])
    assert shown == filter.text
    return shown


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("plain", "plain"),
        ("<think>hm</think>\n\nanswer", "answer"),
        ("\n <think>hm</think> answer \n", "answer"),
        ("one <think>hm</think>two<think>hm</think> three", "one two three"),
        ("<think>never ends", ""),
        ("a < b <thin air", "a < b <thin air"),
        ("a <thi", "a <thi"),
        ("<think><think>x</think>y", "y"),
        ("whole \ud83d\ude00 half \ud83d", "whole 😀 half \ufffd"),
        ("  ", ""),
    ],
)
def test_what_is_visible(said: str, seen: str) -> None:
    """T05: thoughts, blanks at the ends and lone surrogates go; everything else stays, cut into letters or not."""
    assert visible([said]) == visible(list(said)) == seen


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thi", "nk>", " ", "\n", "a", "<", "\ud83d", "\ude00", "é"])))
def test_what_is_visible_does_not_depend_on_the_pieces(pieces: list[str]) -> None:
    """T05: a stream shows what the whole answer would have said."""
    assert visible(pieces) == visible(["".join(pieces)]) == visible(list("".join(pieces)))


def test_a_thought_that_was_opened_in_the_prompt() -> None:
    """T05: the end of a thought on a line of its own ends a thought; in the middle of a sentence it is a word."""
    assert without_stray_thought("so I say\n</think>\n\nanswer") == "answer"
    assert without_stray_thought("The tag `</think>` ends it.") == "The tag `</think>` ends it."


@given(st.text(st.characters(codec=None)))
def test_tidy_text_encodes(text: str) -> None:
    """T05: any text can be stored after tidying, and clean text is left as it is."""
    tidied = tidy(text)
    assert tidied.encode().decode() == tidied
    assert tidied == text or "\ufffd" in tidied or any(ord(letter) > 0xFFFF for letter in tidied)


# --- arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": [1, 2]}',
        {"a": [1, 2]},
        '```json\n{"a": [1, 2]}\n```',
        'Sure! {"a": [1, 2]} as you asked.',
        'I use {these} braces, 5" wide: {"a": [1, 2]}',
        '{"a": [1, 2,],}',
        '{"a": [1, 2], "a": [1, 2]}',
        ' \n{"a": [1, 2]}\n ',
    ],
)
def test_arguments_that_can_be_read(raw: object) -> None:
    """T05: one object, however it is wrapped."""
    assert read_arguments(raw) == ({"a": [1, 2]}, "")


@pytest.mark.parametrize("raw", [None, "", "  ", "{}", {}])
def test_no_arguments(raw: object) -> None:
    """T05: nothing said is no arguments, and no fault."""
    assert read_arguments(raw) == ({}, "")


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1',
        '{"a": {"b": 1}',
        '{"a": "never ends}',
        '{"a": 1}{"b": 2}',
        'either {"a": 1} or {"b": 2}',
        '[{"a": 1}]',
        '[{"a": 1},]',
        '"{}"',
        "null",
        "7",
        "true",
        "no JSON at all",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": 1, "a": 2}',
        "{'a': 1}",
        '{"a": ' * 100_000,
        '{"a": ' * 3_000 + "1" + "}" * 3_000,
        '{"a": ' + "9" * 5_000 + "}",
        '{"' + '\\"' * 400_000,
        "x" * 1_000_001,
        [1],
        3,
        {"a": float("inf")},
    ],
    ids=lambda raw: str(raw)[:20],
)
def test_arguments_that_cannot_be_read(raw: object) -> None:
    """T05: half an object, two of them, or none: a fault that says why, and no arguments; never an exception."""
    arguments, fault = read_arguments(raw)
    assert arguments == {}
    assert fault


def test_a_fence_inside_a_value_is_part_of_it() -> None:
    """T05: a repair never takes a piece of a value for the arguments."""
    text = "``` {} ```"
    assert read_arguments(json.dumps({"text": text}).replace("}", ",}").replace("{,}", "{}")) == ({"text": text}, "")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=4), st.sampled_from(["{}", "```json\n{}\n```", "Here: {} Done."]))
def test_arguments_come_back_as_they_were(arguments: dict[str, object], frame: str) -> None:
    """T05: wrapping loses and changes nothing."""
    assert read_arguments(frame.replace("{}", json.dumps(arguments))) == (arguments, "")


@given(st.text('{}[]",:\\ ab1\n', max_size=60))
def test_no_text_raises(text: str) -> None:
    """T05: whatever stands in place of arguments, there are arguments or there is a fault."""
    arguments, fault = read_arguments(text)
    assert not (arguments and fault)


# --- messages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("The model `gpt-9` does not exist", "The model `gpt-9` does not exist"),
        ("bad key my-own-secret today", "bad key *** today"),
        ("bad key: sk-proj-abc123def456.", "bad key: ***"),
        ("Incorrect API key: abcd****wxyz given", "Incorrect API key: *** given"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: ***"),
        ("two\nlines\x1b[31m and\0 more", "two lines [31m and more"),
        ("x" * 1000, "x" * 299 + "…"),
        ("x" * 60_000 + "***", "x" * 299 + "…"),
    ],
)
def test_messages_are_cleaned(said: str, shown: str) -> None:
    """T50: what a provider says is shown as one short line, without the key or anything that looks like one."""
    assert clean(said, "my-own-secret") == shown
