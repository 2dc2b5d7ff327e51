"""Every pattern of the package takes linear time on text made to slow it down.

The test finds each call of `re` in the source, makes texts from the pattern's own pieces, and measures CPU time, not
the clock: 4,000 characters first, and 64,000 if these took long. A quadratic pattern exceeds the bound many times over.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import FrameType, ModuleType
from typing import Any

import pytest

import lukasa
from lukasa.corpus import split
from lukasa.model import definitions, erasure, gitleaks, names, secret_forms
from lukasa.model.requests import MOST_TAIL
from lukasa.model.secrets import MOST_LINE
from lukasa.observe import cues, rules
from lukasa.providers.chat import looking_up, wire
from lukasa.providers.documents import formats, reading
from lukasa.read import coverage, question, signals, times
from lukasa.surfaces.cli import invocation, output
from lukasa.write import named_files

SMALL, LARGE = 4_000, 64_000
SUSPECT = 0.004  # seconds of CPU for SMALL after which LARGE is tried
BOUND = 1.0  # seconds of CPU for LARGE: linear patterns need a tenth, quadratic ones at least several
_CALLS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_ANCHORED = {"match", "fullmatch"}
# The code cuts a text to this length before it meets these patterns.
_CUT = {
    "lukasa.model.names._CODE": names.LONGEST_CODE,
    "lukasa.read.coverage": coverage.LONGEST,
    "lukasa.surfaces.cli.invocation._BEGINS": invocation._WHOLE,
    "lukasa.surfaces.cli.output._WRONG_WORD": output.LONGEST_SAID,
    "lukasa.model.requests._TAIL": MOST_TAIL,
    "lukasa.model.text._NAMED": 80,
    "lukasa.model.text._ASKING": 1000,
    "lukasa.providers.chat.wire._KEY_SHAPES": 6 * wire._MESSAGE_CHARS,
    "lukasa.observe.cues.Phrases": rules.MOST_REQUEST,
    "lukasa.model.gitleaks": MOST_LINE,
    "lukasa.model.secret_forms": MOST_LINE,
    "lukasa.write.named_files._PATH": named_files.LONGEST,
    "lukasa.providers.chat.looking_up": looking_up.LONGEST_REQUEST,
    "lukasa.corpus.split._ENDED": split._TAIL,
    "lukasa.providers.documents.formats._PAGE": formats._PAGE_WITHIN,
    "lukasa.providers.documents.reading._META_CHARSET": reading._WITHIN,
    "lukasa.providers.documents.reading._XML_ENCODING": reading._WITHIN,
}
# All uses of these begin at the start of the text, but through another name or module.
_ONLY_MATCHED = {"lukasa.curated.adr.NAME", "lukasa.model.requests._OF", "lukasa.model.requests._DOWN"}
# Patterns made at run time: a word of the call in the source, and the patterns that reach it.
_MADE: dict[str, Callable[[], Iterable[tuple[Any, int]]]] = {
    "map(_whole, every)": lambda: [(erasure._pattern(("Ines Marlow",)).pattern, re.I)],
    "join(sorted(runs": lambda: [(hint[1].pattern, re.I) for hint in [erasure._hint(("Ines Marlow",))] if hint],
    "join(every)": lambda: [(erasure._bytes(("Ines Marlow",)).pattern, re.I)],
    "re.escape(key)": lambda: [(r"`kind`:(.*)", 0)],
    "{form}": lambda: [(pattern.pattern, pattern.flags) for pattern in looking_up._ASKED],
    "re.escape(literal)": lambda: [(signals._whole(one).pattern, 0) for one in ("e4711", "src/app.py", "a b")],
    "{key}": lambda: [(r"^status:.*\n", re.MULTILINE)],
    "{word}": lambda: [(rf"\b{times._month_pattern(month)}\b", 0) for month in range(1, 13)],
    "_pattern(part)": lambda: [(definitions._pattern(name), 0) for name in ("a", "Settings")],
    "re.escape(name)": lambda: [(r"^([0-9a-f]{40,64}) refs/heads/main$", re.MULTILINE)],
    "re.compile(source)": lambda: [
        *((pattern, 0) for _, _, pattern in secret_forms._FORMS),
        *((value, 0) for value in vars(secret_forms).values() if isinstance(value, str) and "(?" in value),
    ],
    "translated(regex)": lambda: [(gitleaks.translated(rule.regex), 0) for rule in gitleaks.rules()],
    "re.compile(one.pattern)": list,  # of a file of expectations, which its owner writes and runs
    "re.compile(pattern, re.IGNORECASE)": lambda: [(one.pattern, one.flags) for _, one in coverage._patterns()],
    "re.compile(pattern)": list,  # the same, when the file is read
    "said": list,  # one property of a request, found by a pattern that is tested
    "self._patterns": list,  # see `_phrases`
    "flags": lambda: [
        *((pattern, flags) for _, pattern, flags, _ in times._READINGS),
        *((value, re.I) for value in vars(question).values() if isinstance(value, str) and value.startswith(r"\b")),
    ],
}


class Use:
    """One pattern, its name, and whether all its uses begin at the start of the text."""

    def __init__(self, name: str, pattern: re.Pattern[Any], anchored: bool = False) -> None:
        self.name, self.pattern, self.anchored = name, pattern, anchored


@cache
def _modules() -> tuple[ModuleType, ...]:
    found = []
    for module in pkgutil.walk_packages(lukasa.__path__, "lukasa."):
        try:
            found.append(importlib.import_module(module.name))
        except ImportError:  # an extra that is not installed
            continue
    return tuple(found)


@cache
def _uses() -> tuple[Use, ...]:
    return tuple(use for module in _modules() for use in _of(module)) + tuple(_phrases())


def _phrases() -> Iterator[Use]:
    for phrases in vars(cues).values():
        if isinstance(phrases, cues.Phrases):
            for pattern in phrases._patterns:
                yield Use("lukasa.observe.cues.Phrases", re.compile(pattern, re.IGNORECASE))


def _of(module: ModuleType) -> Iterator[Use]:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    names = {
        id(node.value): node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CALLS):
            continue
        if not (isinstance(call.func.value, ast.Name) and call.func.value.id == "re"):
            continue
        name = names.get(id(call), f"line {call.lineno}")
        methods = _methods(tree, name) if call.func.attr == "compile" else {call.func.attr}
        for pattern, flags in _evaluated(call, module):
            full = f"{module.__name__}.{name}"
            yield Use(full, re.compile(pattern, flags), methods <= _ANCHORED or full in _ONLY_MATCHED)


def _methods(tree: ast.AST, name: str) -> set[str]:
    """The methods of a private pattern that its module calls; "search" stands for every other use."""
    if not name.startswith("_"):
        return {"search"}
    called = {
        id(node.value): node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }
    loads = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return {called.get(id(node), "search") for node in loads} or {"search"}


def _evaluated(call: ast.Call, module: ModuleType) -> Iterable[tuple[Any, int]]:
    function = ast.unparse(call.func)
    position = 1 if function == "re.compile" else 4 if function in ("re.sub", "re.subn") else 2
    flags = [k.value for k in call.keywords if k.arg == "flags"] or call.args[position : position + 1]
    try:
        pattern, *flag = (eval(ast.unparse(node), dict(vars(module))) for node in [call.args[0], *flags])  # noqa: S307
    except NameError:  # made of local values
        source = ast.unparse(call)
        made = [make for word, make in _MADE.items() if word in source]
        assert made, f"{module.__name__}, line {call.lineno}: add the patterns of {source} to _MADE"
        return made[0]()
    return [(pattern, int(sum(flag)))]


# Texts for a pattern: a text that leads it to a repetition, and then that repetition's own characters without end.
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_CLASSES = {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a", op.CATEGORY_NOT_SPACE: "-"}
_COMMON = ("a", "a/", " ", "\n", "a-", "- ", '"', "[", "(", "User: ", "1.", "a ")


def _example(items: Any) -> str:
    """A short text that roughly fits parsed items."""
    return "".join(_piece(code, value) for code, value in items)


def _piece(code: Any, value: Any) -> str:
    if code is op.LITERAL:
        return chr(value)
    if code is op.IN:
        return _characters(value)[0]
    if code in (op.ANY, op.NOT_LITERAL):
        return "a"
    if code in _REPEATS:
        return _example(value[2]) * int(value[0])
    if code is op.SUBPATTERN:
        return _example(value[-1])
    if code is op.BRANCH:
        return _example(value[1][0])
    return _example(value) if code is op.ATOMIC_GROUP else ""


def _characters(items: Any) -> list[str]:
    excluded = {chr(value) for code, value in items if code is op.LITERAL}
    if items[0][0] is op.NEGATE:
        return [c for c in "ab -.>/" if c not in excluded][:3]
    found = [chr(v) if c is op.LITERAL else chr(v[0]) if c is op.RANGE else _CLASSES.get(v, "-") for c, v in items]
    return list(dict.fromkeys(found))[:4]


def _repetitions(items: Any, before: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each repetition of a pattern: a text that leads to it, and texts that it may repeat."""
    for code, value in items:
        if code in _REPEATS:
            inner = list(value[2])
            alone = len(inner) == 1 and inner[0][0] is op.IN
            yield before, _characters(inner[0][1]) if alone else [_example(inner) or "a"]
            yield from _repetitions(inner, before)
        elif code is op.BRANCH:
            for branch in value[1]:
                yield from _repetitions(branch, before)
        elif code is op.SUBPATTERN:
            yield from _repetitions(value[-1], before)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from _repetitions(value[1], before)
        elif code is op.ATOMIC_GROUP:
            yield from _repetitions(value, before)
        before += _piece(code, value)
    yield before, [before or "a"]


def _texts(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    found = list(_repetitions(_parser.parse(pattern.pattern, pattern.flags)))
    found = found[:: len(found) // 12 + 1]
    leads = list(dict.fromkeys(["", *(lead for lead, _ in found)]))
    units = list(dict.fromkeys([*(unit for _, units in found for unit in units), *_COMMON]))[:24]
    for lead, unit in product(leads, units):
        yield lead + unit * ((size - len(lead) - 1) // len(unit)) + "\0"
        yield (lead + unit) * (size // len(lead + unit))
    for one, other in product(units[:8], repeat=2):
        yield (one + other) * (size // len(one + other))


class _TooSlow(Exception):
    pass


def _raise(signum: int, frame: FrameType | None) -> None:
    raise _TooSlow


def _cpu(use: Use, text: str) -> float:
    """The seconds of CPU that a pattern takes, at most BOUND: then it is interrupted."""
    subject: Any = text.encode() if isinstance(use.pattern.pattern, bytes) else text
    before = signal.signal(signal.SIGVTALRM, _raise)
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, BOUND)
    try:
        if use.anchored:
            use.pattern.match(subject)
            use.pattern.fullmatch(subject)
        else:
            for _ in use.pattern.finditer(subject):
                pass
    except _TooSlow:
        return BOUND
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - begun


def _slow_text(use: Use) -> str | None:
    """The beginning of a text on which a pattern exceeds the bound; None if there is none."""
    most = _CUT.get(use.name) or _CUT.get(use.name.rpartition(".")[0], LARGE)
    small = min(SMALL, most)
    suspects = {n for n, text in enumerate(_texts(use.pattern, small)) if _cpu(use, text[:most]) > SUSPECT}
    if not suspects:
        return None
    grown = (text[:most] for n, text in enumerate(_texts(use.pattern, most)) if n in suspects)
    return next((text[:60] for text in grown if _cpu(use, text) >= BOUND), None)


@pytest.mark.parametrize("package", sorted({use.name.split(".")[1] for use in _uses()}))
def test_every_pattern_takes_linear_time(package: str) -> None:
    """No text makes a pattern read the same characters again and again."""
    uses = [use for use in _uses() if use.name.split(".")[1] == package]
    assert {use.name: text for use in uses if (text := _slow_text(use)) is not None} == {}


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?m)^\s*(?:\[Image[^\]\n]{0,80}\])$",
        r"\b[\w-]+(?:/[\w.-]+)+\.\w{1,8}\b",
        r"(?s)<think>.*?</think>",
        r"## +(\S.*?) *#* *$",
        r"(a+)+$",
        r"\s+$",
    ],
)
def test_the_search_for_slow_patterns_finds_them(pattern: str) -> None:
    """Patterns that once were in use, and textbook ones, exceed the bound."""
    assert _slow_text(Use("", re.compile(pattern))) is not None
