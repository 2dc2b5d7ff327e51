"""The dataclass of frozen values, as `dataclasses` has it, in a twentieth of the time to make.

`dataclasses` compiles six methods for every class, and the engine has more than two hundred: most of the time that a
hook takes would be that. Here the methods are closures over the names of the fields, and what `dataclasses` keeps of
a class is made by it when somebody first asks; only a class that is made often has its `__init__` compiled after all,
since that is several times as fast to call, and faster than what `dataclasses` makes of it. What comes out is a
dataclass in every other way (`fields`, `replace`, `match`), and a type checker sees nothing but the standard decorator.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter, itemgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

__all__ = ["dataclass"]

Made = TypeVar("Made")
OFTEN = 96  # instances of a class, by when compiling has paid for itself

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool) -> Callable[[type[Made]], type[Made]]:
        if not (frozen and slots):
            raise TypeError("for frozen values with slots; anything else is the standard library's")
        return _make


def _make(given: type[Any]) -> type[Any]:
    names = tuple(given.__annotations__)
    space = _written(given)
    fields = {name: _field(name, space.pop(name, MISSING)) for name in names}
    space |= {"__slots__": names, "__match_args__": names, "__qualname__": given.__qualname__}
    space |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete, "__signature__": _SIGNATURE}
    space |= {"__getstate__": _state, "__setstate__": _restore}
    space |= {kept: _Kept(given, kept) for kept in ("__dataclass_fields__", "__dataclass_params__")}
    space["__eq__"], space["__hash__"] = _comparing([name for name, field in fields.items() if field.compare])
    if "__repr__" not in space:
        space["__repr__"] = _showing([name for name, field in fields.items() if field.repr])
    if space["__doc__"] is None:
        space["__doc__"] = _DOC
    made: Any = type(given.__name__, given.__bases__, space)
    made.__init__ = _filling(given, made, fields)
    return made  # type: ignore[no-any-return]


def _written(given: type[Any]) -> dict[str, Any]:
    """What the class was written with, without the places that Python makes for it."""
    return {name: value for name, value in vars(given).items() if name not in ("__dict__", "__weakref__")}


def _field(name: str, value: Any) -> Field[Any]:
    """What is known of a field: its default, or how to make one, and where it counts."""
    if value is MISSING:
        return _REQUIRED
    found: Field[Any] = value if isinstance(value, Field) else dataclasses.field(default=value)
    if type(found.default).__hash__ is None:
        raise ValueError(f"all values would share the default of {name}: use default_factory")
    return found


_REQUIRED: Field[Any] = dataclasses.field()


def _filling(given: type[Any], made: Any, fields: Mapping[str, Field[Any]]) -> Callable[..., None]:
    """The `__init__`: values in order, values by name, then what has a default."""
    puts = [vars(made)[name].__set__ for name in fields]
    parts, count, check = list(fields.items()), len(fields), getattr(given, "__post_init__", None)
    calls = iter(range(OFTEN))

    def fill(self: Any, /, *args: Any, **named: Any) -> None:
        if next(calls, None) is None:
            made.__init__ = _compiled(given, made, fields)
        for put, value in zip(puts, args, strict=False):
            put(self, value)
        if named or len(args) != count:
            for put, (name, field) in zip(puts[len(args) :], parts[len(args) :], strict=True):
                put(self, named.pop(name) if name in named else _default(given, name, field))
            if named or len(args) > count:
                raise TypeError(f"{given.__qualname__}() has no place for {', '.join(named) or args[count:]}")
        if check is not None:
            check(self)

    return fill


def _compiled(given: type[Any], made: Any, fields: Mapping[str, Field[Any]]) -> Callable[..., None]:
    """The same `__init__`, with code that the standard library compiles: for a class whose values can be changed.

    A value becomes one of such a class while it is filled: two changes of class cost less than setting a few fields
    past the lock. Values by name are put in order first, since a call takes long to find the places of many names.
    """
    fill: Callable[..., None] = _standard(given, frozen=False)
    derived: list[Callable[..., None]] = []
    unlocked = type(given.__name__, given.__bases__, {"__slots__": tuple(fields)})
    become, count, check = vars(object)["__class__"].__set__, len(fields), getattr(given, "__post_init__", None)
    defaults = {name: field.default for name, field in fields.items() if field.default is not MISSING}
    in_order = itemgetter(*fields) if count > 1 else None

    def filling(self: Any, /, *args: Any, **named: Any) -> None:
        if type(self) is not made:
            if not derived:  # compiled by itself, since few classes have others made of them
                derived.append(_standard(given, frozen=True))
            return derived[0](self, *args, **named)
        become(self, unlocked)
        if named and not args and in_order is not None:
            values = named if len(named) == count else {**defaults, **named}
            try:
                args, named = (in_order(values), {}) if len(values) == count else (args, named)
            except KeyError:
                args = ()  # a name that no field has: `fill` says which
        fill(self, *args, **named)
        self.__class__ = made
        if check is not None:
            check(self)
        return None

    return filling


def _standard(given: type[Any], *, frozen: bool) -> Callable[..., None]:
    twin = _twin(given)
    if not frozen and hasattr(twin, "__post_init__"):
        del twin.__post_init__  # to be called when the value is what it will be
    standard = dataclasses.dataclass(frozen=frozen, repr=False, eq=False, match_args=False)(twin)
    filling: Callable[..., None] = vars(standard)["__init__"]
    return filling


def _twin(given: type[Any]) -> type[Any]:
    """The class as it was written, for `dataclasses` to make of it what it likes."""
    return type(given.__name__, given.__bases__, {**_written(given), "__doc__": "A twin."})


class _Kept:
    """What `dataclasses` keeps of a class, for `fields`, `replace` and whoever derives from it.

    It is made by `dataclasses`, of the class as it was written, when somebody first asks: few classes ever are.
    """

    __slots__ = ("_found", "_given", "_name")

    def __init__(self, given: type[Any], name: str) -> None:
        self._given, self._name, self._found = given, name, None

    def __get__(self, value: object, made: type[Any]) -> Any:
        if self._found is None:
            standard = dataclasses.dataclass(init=False, repr=False, eq=False)(_twin(self._given))
            self._found = getattr(standard, self._name)
        return self._found


class _Signature:
    """What `help` and editors show of a class: worked out when one of them asks."""

    def __get__(self, value: object, made: type[Any]) -> inspect.Signature:
        return inspect.Signature([_parameter(field) for field in dataclasses.fields(made)])


class _Doc:
    """What the standard says of a class that says nothing itself: how it is called."""

    def __get__(self, value: object, made: type[Any]) -> str:
        return f"{made.__name__}{inspect.signature(made)}"


_SIGNATURE, _DOC = _Signature(), _Doc()


def _parameter(field: Field[Any]) -> inspect.Parameter:
    made_anew = field.default_factory is not MISSING
    default = field.default_factory if made_anew else field.default
    shown = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=shown, annotation=field.type)


def _default(given: type[Any], name: str, field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise TypeError(f"{given.__qualname__}() needs {name}")


def _comparing(names: Sequence[str]) -> tuple[Callable[[Any, Any], Any], Callable[[Any], int]]:
    """Equality and hash, both of the compared fields' values as one tuple."""
    if len(names) > 1:
        values: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    else:

        def values(self: Any) -> tuple[Any, ...]:
            return tuple(getattr(self, name) for name in names)

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def number(self: Any) -> int:
        return hash(values(self))

    return equal, number


def _showing(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def show(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return show


def _refuse_to_set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For copying and for other processes, which cannot set fields either."""
    return [getattr(self, name) for name in type(self).__match_args__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(type(self).__match_args__, state, strict=True):
        object.__setattr__(self, name, value)
