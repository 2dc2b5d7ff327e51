"""Frozen values: what the engine's decorator makes is what `dataclasses` would have made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from lukasa.model.frozen import OFTEN, dataclass


@dataclass(frozen=True, slots=True)
class Own:
    """Ours."""

    name: str
    size: int = 3
    parts: list[int] = field(default_factory=list)
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """Theirs."""

    name: str
    size: int = 3
    parts: list[int] = field(default_factory=list)
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Single:
    value: object


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Checked:
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("less than nothing")


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: int = 0


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 4), {}),
    ((), {"name": "a", "note": "n"}),
    (("a",), {"parts": [1], "secret": "s"}),
    (("a", 4, [1], "n", "s"), {}),
    ((), {"secret": "s", "size": 4, "name": "a", "parts": [1], "note": "n"}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((), {"size": 1}),
    (("a",), {"name": "b"}),
    (("a",), {"other": 1}),
    (("a", 4, [1], "n", "s", "more"), {}),
    ((), {"parts": [1], "other": 1}),
    ((), {"size": 4, "parts": [1], "note": "n", "secret": "s", "other": 1}),
]


@pytest.fixture(params=["seldom", "often"], autouse=True, scope="module")
def made(request: pytest.FixtureRequest) -> None:
    """Everything holds of the first instances of a class, and then of one of many, which compiled code makes."""
    if request.param == "often":
        for _ in range(OFTEN + 1):
            Own("a"), Single(1), Empty(), Checked(1)


@pytest.mark.parametrize(("args", "named"), CALLS)
def test_made_and_shown_like_the_standard(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    own, standard = Own(*args, **named), Standard(*args, **named)
    assert dataclasses.asdict(own) == dataclasses.asdict(standard)
    assert repr(own) == repr(standard).replace("Standard", "Own")
    assert Own.__match_args__ == Standard.__match_args__
    assert list(inspect.signature(Own).parameters) == list(inspect.signature(Standard).parameters)
    assert not hasattr(own, "__dict__")


@pytest.mark.parametrize(("args", "named"), WRONG)
def test_wrong_arguments_are_refused(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Own, Standard):
        with pytest.raises(TypeError):
            kind(*args, **named)


def test_a_name_too_many_is_refused() -> None:
    for _ in range(OFTEN + 2):
        with pytest.raises(TypeError):
            Pair(left=1, right=2, other=3)  # type: ignore[call-arg]


def test_nothing_can_be_changed() -> None:
    value = Own("a")
    for name in ("name", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, "b")
        with pytest.raises(FrozenInstanceError):
            delattr(value, name)
    assert value == Own("a")


def test_compared_by_what_is_compared() -> None:
    assert Own("a", note="one") == Own("a", note="two")
    assert Own("a") != Own("b")
    assert Own("a").__eq__(Standard("a")) is NotImplemented
    assert Single(1) == Single(1) != Single(2)
    assert len({Single("x"), Single("x"), Single("y"), Empty(), Empty()}) == 3
    with pytest.raises(TypeError):
        hash(Own("a"))  # of a list, as anywhere


def test_defaults_are_made_anew() -> None:
    assert Own("a").parts is not Own("a").parts


def test_replaced_copied_and_sent() -> None:
    value = Own("a", parts=[1], note="n")
    assert dataclasses.replace(value, size=9) == Own("a", 9, [1])
    sent = pickle.loads(pickle.dumps(value))  # noqa: S301 - as a process pool sends it
    for other in (copy.copy(value), copy.deepcopy(value), sent):
        assert other == value
        assert other.note == "n"


def test_checked_after_it_is_made() -> None:
    assert Checked(1).size == 1
    with pytest.raises(ValueError, match="less than nothing"):
        Checked(-1)


def test_only_frozen_values_with_slots() -> None:
    with pytest.raises(TypeError, match="standard library"):
        dataclass(frozen=True, slots=False)


def test_the_standard_library_finds_its_fields() -> None:
    """`fields` shows what `dataclasses` would have kept, of a class and of a value."""
    shown = [(f.name, f.type, f.default, f.default_factory, f.compare, f.repr) for f in dataclasses.fields(Own)]
    assert shown == [
        (f.name, f.type, f.default, f.default_factory, f.compare, f.repr) for f in dataclasses.fields(Standard)
    ]
    assert dataclasses.fields(Own) == dataclasses.fields(Own("a"))
    assert dataclasses.is_dataclass(Empty)
    assert dataclasses.fields(Empty) == ()


def test_a_class_without_words_shows_how_it_is_called() -> None:
    assert Own.__doc__ == "Ours."
    assert Single.__doc__ == "Single(value: 'object')"


def test_no_two_values_share_a_list() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @dataclass(frozen=True, slots=True)
        class Shared:
            parts: list[int] = []  # noqa: RUF012 - what is refused


class Derived(Own):
    """Derived without more fields, and with a place for anything."""


def test_whoever_derives_is_filled_like_the_standard() -> None:
    value = Derived("a", note="n")
    assert type(value) is Derived
    assert (value.name, value.size, value.parts, value.note) == ("a", 3, [], "n")
    with pytest.raises(FrozenInstanceError):
        value.name = "b"  # type: ignore[misc]
