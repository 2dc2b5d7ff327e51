"""Cleaning: what nobody said, what we said ourselves, dumps and secrets are gone before anything is kept."""

from __future__ import annotations

from collections import Counter

import pytest

from lukasa.model.echo import marked
from lukasa.observe.noise import MOST_CHARACTERS, MOST_FAILURE, clean, cleaned
from lukasa.ports import Aside, Piece
from lukasa.write.transforms import TRANSFORMS

REDACT = TRANSFORMS["redact_secrets"]
KEY = "sk-" + "a1B2" * 8
DOCUMENT = '# Memory of workspace "w"\n\n## Standing rules and preferences\n- A rule [tier=x]\n> Always obey\n'


def test_asides_are_counted_and_gone() -> None:
    """B8, O1: whatever kind it is."""
    asides: tuple[Aside, ...] = ("harness", "sidechain", "summary", "system", "thinking", "tool-call", "tool-result")
    pieces = [Piece(f"p{n}", "user", "Always obey", aside=aside) for n, aside in enumerate(asides)]
    found = clean([*pieces, Piece("said", "user", "Hello")], REDACT, place=7)
    assert [(u.id, u.text, u.place) for u in found.utterances] == [("said", "Hello", 7)]
    assert found.stripped == dict.fromkeys(asides, 1)


def test_a_short_failure_of_a_tool_is_kept_as_its_word() -> None:
    """B8: it is what later work runs into again; long output is not."""
    pieces = [
        Piece("short", "tool", "port 5432 is in use", aside="tool-result", failed=True),
        Piece("long", "tool", "x " * MOST_FAILURE, aside="tool-result", failed=True),
    ]
    (kept,) = clean(pieces, REDACT).utterances
    assert (kept.id, kept.role) == ("short", "tool")


def test_a_message_is_kept_once() -> None:
    """O9: a file may hold a record twice, as after a resumption."""
    found = clean([Piece("a", "user", "Hello"), Piece("a", "user", "Hello"), Piece("b", "user", "There")], REDACT)
    assert [u.place for u in found.utterances] == [0, 1]


CASES = {
    "own memory": (f"before\n{marked(DOCUMENT)}after", "before\nafter", "own-memory"),
    "own memory without marks": (f"before\n{DOCUMENT}\n\nafter", "before\nafter", "own-memory"),
    "a reminder": ("a<system-reminder>\nAlways obey\n</system-reminder>b", "ab", "harness"),
    "surroundings": ("<environment_context>x</environment_context>Hello", "Hello", "harness"),
    "a command": ("<command-name>/clear</command-name>\n<command-args></command-args>", "", "harness"),
    "an interruption": ("[Request interrupted by user]\ngo on", "go on", "harness"),
    "encoded data": (f"look: {'QUJD' * 100}= there", "look: [data] there", "dump"),
    "a picture": (f"data:image/png;base64,{'QUJD' * 9} x", "[data] x", "dump"),
    "a listing": ("see\n```\n" + "line\n" * 80 + "```\nthere", "see\n[a listing of 81 lines]\nthere", "dump"),
    "a secret": (f"the key is {KEY}", "the key is [secret]", "secret"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_belong_is_taken_out(case: str) -> None:
    """B8: and it is counted by what it was."""
    text, left, name = CASES[case]
    counts: Counter[str] = Counter()
    assert cleaned(text, REDACT, counts) == left
    assert counts == {name: 1}


def test_what_people_write_stays_as_it_is() -> None:
    """B8: short code, long paragraphs, quotations, any script."""
    for text in ("```\nprint(1)\n```\nwhy?", "word " * 900, "> quoted\nand 日本語", "a < b and c > d"):
        assert cleaned(text, REDACT) == text.strip()


def test_endless_text_is_cut_at_both_ends() -> None:
    """W9: the beginning and the end of a message are where people say what they want."""
    text = cleaned("first " + "word " * 20_000 + "last", REDACT)
    assert len(text) < MOST_CHARACTERS + 100
    assert text.startswith("first")
    assert text.endswith("last")
    assert len(cleaned("x" * 100_000, REDACT)) < 1000


SECRETS = (
    KEY,
    "ghp_" + "a1B2" * 9,
    "AKIA" + "A1B2" * 4,
    "xoxb-" + "1234567890-abcdefghij",
    "AIza" + "a1B2c3D4" * 4 + "xyz",
    "glpat-" + "a1B2c3D4e5F6g7H8i9J0",
    "hf_" + "a1B2" * 9,
    "npm_" + "a1B2" * 9,
)


@pytest.mark.parametrize("secret", SECRETS, ids=lambda s: s[:5])
def test_keys_of_many_makers_are_known(secret: str) -> None:
    """B8: also without a word before them that says what they are."""
    assert secret not in cleaned(f"use {secret} for it", REDACT)


@pytest.mark.parametrize(
    "text",
    [
        "my password is hunter2correct",
        "the admin password: hunter2correct",
        "postgres://ana:hunter2correct@db-7/ferry",
        "Authorization: Bearer hunter2correct0123456789",
        "set the passphrase to hunter2correct",
    ],
)
def test_a_password_in_plain_words_is_known(text: str) -> None:
    """B8: people do not write them with an equals sign."""
    assert "hunter2correct" not in cleaned(text, REDACT)
