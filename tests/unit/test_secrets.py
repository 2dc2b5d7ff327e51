"""The detector of secrets: what it finds, what it leaves alone, and that it takes text of any length."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model import gitleaks
from lukasa.model.conversation import Note
from lukasa.model.secrets import MARK, MOST_LINE, find_secrets, holds_secret, redact, redact_all
from tests.helpers.secret_texts import HARMLESS, SECRETS

NOW = datetime(2031, 5, 4, tzinfo=UTC)
TOKEN = "gh" + "p_" + "k3Jx9QmZ2LwT7vRbN5sYcD8fHgA1pE4uWo6i"


def left(secret: str, text: str) -> bool:
    """Whether a text still shows a secret, or sixteen characters of a long one."""
    parts = (secret[at : at + 16] for at in range(0, max(1, len(secret) - 15), 4)) if len(secret) > 24 else (secret,)
    return any(part in text for part in parts)


def test_at_least_95_of_100_formats_are_redacted_and_at_most_5_harmless_texts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The labelled set: 151 formats of secrets, and 117 texts that only look like one."""
    missed = [name for name, secret, text in SECRETS if left(secret, redact(text)[0])]
    alarms = [text for text in HARMLESS if find_secrets(text)]
    with capsys.disabled():
        print(f"\n  secrets   {len(SECRETS):4}  missed       {len(missed):3}  {missed}")
        print(f"  harmless  {len(HARMLESS):4}  false alarms {len(alarms):3}  {alarms}")
    assert (len(SECRETS), len(HARMLESS)) == (151, 117)
    assert len(missed) <= 0.05 * len(SECRETS)
    assert len(alarms) <= 0.05 * len(HARMLESS)


@pytest.mark.parametrize("text", [text for _, _, text in SECRETS])
def test_redacting_twice_changes_nothing(text: str) -> None:
    """A redacted text holds no secret: the mark is none."""
    once, found = redact(text)
    assert found
    assert redact(once) == (once, 0)


def test_only_the_secret_goes() -> None:
    """The sentence around a secret stays, with its punctuation."""
    assert redact(f"Push with {TOKEN}, then stop.") == (f"Push with {MARK}, then stop.", 1)
    assert redact("The password is Tulip77! Do not lose it.")[0] == f"The password is {MARK} Do not lose it."


@pytest.mark.parametrize("before", [0, MOST_LINE - 20, MOST_LINE - 420, 10 * MOST_LINE + 7])
def test_a_secret_is_found_at_any_place_of_a_long_line(before: int) -> None:
    """A long line is searched in pieces, and no cut hides a secret."""
    text, found = redact("so " * (before // 3) + TOKEN + " so" * 3000)
    assert found == 1
    assert not left(TOKEN, text)


def test_a_secret_longer_than_a_piece_goes_whole() -> None:
    """A token of 20,000 characters leaves nothing behind."""
    token = "ey" + "J" + "a1B2c3D4e5" * 2000
    text, _ = redact(f"cookie: session={token} end")
    assert not left(token, text)


def test_values_are_redacted_by_their_name() -> None:
    """In data, the key alone may say what a value is."""
    data = {"password": "tulip", "user": "kim", "deep": [{"api_key": "a1b2c3"}], "pages": 12, "secret": "${FROM_ENV}"}
    clean = {"password": MARK, "user": "kim", "deep": [{"api_key": MARK}], "pages": 12, "secret": "${FROM_ENV}"}
    assert redact_all(data) == clean
    assert holds_secret(data)
    assert not holds_secret(clean)


def test_structs_keep_their_type() -> None:
    """A struct is copied with its texts redacted, and returned itself if there is nothing to redact."""
    note = Note("c", "k", f"use {TOKEN}", NOW, NOW)
    assert redact_all(note) == Note("c", "k", f"use {MARK}", NOW, NOW)
    plain = Note("c", "k", "use tea", NOW, NOW)
    assert redact_all(plain) is plain


def test_every_rule_of_gitleaks_compiles_and_names_its_words() -> None:
    """A newer rule file must not silently lose rules."""
    found = gitleaks.rules()
    assert len(found) >= 210
    for rule in found:
        assert isinstance(gitleaks.compiled(rule.regex), re.Pattern)
        assert all(word == word.lower() for word in rule.keywords)
        assert rule.keywords


@given(st.text(max_size=300))
def test_places_are_in_order_and_apart(text: str) -> None:
    """The secrets of a text never overlap, and all lie inside it."""
    edges = [edge for start, end, _ in find_secrets(text) for edge in (start, end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
