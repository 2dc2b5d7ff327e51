"""The dataclass of frozen values, as `dataclasses` has it, in a quarter of the time to make.

`dataclasses` compiles six methods for every class, and the engine has more than a hundred: a third of the time that
a hook takes would be that. Here the methods are closures over the names of the fields; only a class that is made
often has its `__init__` compiled after all, since that is several times as fast to call. What comes out is a dataclass
in every other way (`fields`, `replace`, `match`), and a type checker sees nothing but the standard decorator.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

__all__ = ["dataclass"]

Made = TypeVar("Made")
OFTEN = 256  # instances of a class, by when compiling has paid for itself

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool) -> Callable[[type[Made]], type[Made]]:
        if not (frozen and slots):
            raise TypeError("for frozen values with slots; anything else is the standard library's")
        return _make


def _make(given: type[Any]) -> type[Any]:
    made: Any = dataclasses.dataclass(slots=True, init=False, repr=False, eq=False)(given)
    fields = dataclasses.fields(made)
    made.__init__ = _filling(made, fields)
    made.__signature__ = _Signature()
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    made.__getstate__, made.__setstate__ = _state, _restore
    made.__eq__, made.__hash__ = _comparing([field.name for field in fields if field.compare])
    if "__repr__" not in vars(given):
        made.__repr__ = _showing([field.name for field in fields if field.repr])
    return made  # type: ignore[no-any-return]


def _filling(made: type[Any], fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., None]:
    """The `__init__`: values in order, values by name, then what has a default."""
    puts = [getattr(made, field.name).__set__ for field in fields]
    count, check = len(fields), getattr(made, "__post_init__", None)
    calls = iter(range(OFTEN))

    def fill(self: Any, /, *args: Any, **named: Any) -> None:
        if next(calls, None) is None:
            made.__init__ = _compiled(made, fields)
        for put, value in zip(puts, args, strict=False):
            put(self, value)
        if named or len(args) != count:
            for put, field in zip(puts[len(args) :], fields[len(args) :], strict=True):
                put(self, named.pop(field.name) if field.name in named else _default(made, field))
            if named or len(args) > count:
                raise TypeError(f"{made.__qualname__}() has no place for {', '.join(named) or args[count:]}")
        if check is not None:
            check(self)

    return fill


def _compiled(made: type[Any], fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., None]:
    """The same `__init__` as the standard library compiles it, borrowed from a class that it makes of these fields."""
    namespace = {name: value for name, value in vars(made).items() if name == "__post_init__"}
    like = [(field.name, Any, _afresh(field)) for field in fields]
    standard = dataclasses.make_dataclass(
        made.__name__, like, frozen=True, repr=False, eq=False, match_args=False, namespace=namespace
    )
    filling: Callable[..., None] = vars(standard)["__init__"]
    return filling


def _afresh(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return dataclasses.field(default_factory=field.default_factory)
    return dataclasses.field(default=field.default)


class _Signature:
    """What `help` and editors show of a class: worked out when one of them asks."""

    def __get__(self, value: object, made: type[Any]) -> inspect.Signature:
        return inspect.Signature([_parameter(field) for field in dataclasses.fields(made)])


def _parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
    made_anew = field.default_factory is not MISSING
    default = field.default_factory if made_anew else field.default
    shown = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=shown, annotation=field.type)


def _default(made: type[Any], field: dataclasses.Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise TypeError(f"{made.__qualname__}() needs {field.name}")


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
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
