"""The rules of gitleaks (`gitleaks.toml`, kept as published): the keys of 220 services by their form.

A rule names words of which a line must hold one. Its pattern is compiled when such a line first comes.
"""

from __future__ import annotations

import math
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lukasa.model.secrets import Found

# Changes to the patterns, for prose: a secret may end a sentence or follow "is".
_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_BEGIN = r"[\w.-]{0,50}?"
_OPERATOR = r"(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)"
_PROSE_OPERATOR = r"(?:=|>|:{1,3}=|\|\||:|=>|\?=|,|\b(?:is|was|ist|lautet)\b)"
# They read several lines or files, or stand for a word alone; `secret_forms` finds the same in linear time.
_LEFT_OUT = frozenset(
    "private-key curl-auth-header curl-auth-user kubernetes-secret-yaml nuget-config-password generic-api-key "
    "hashicorp-tf-password jwt-base64".split()
)


class Rule(NamedTuple):
    """One rule: words of which a line holds one, the pattern, the group with the secret, and its least entropy."""

    id: str
    keywords: tuple[str, ...]
    regex: str
    group: int
    entropy: float


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules in use."""
    config = tomllib.loads((Path(__file__).parent / "gitleaks.toml").read_text(encoding="utf-8"))
    return tuple(
        Rule(r["id"], tuple(r["keywords"]), r["regex"], r.get("secretGroup", 0), r.get("entropy", 0.0))
        for r in config["rules"]
        if "regex" in r and r["id"] not in _LEFT_OUT
    )


@cache
def compiled(regex: str) -> re.Pattern[str]:
    """Return one of gitleaks' patterns, compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a set inside a set, which Go reads as we do
        return re.compile(translated(regex))


def translated(regex: str) -> str:
    """Return Python's spelling of one of gitleaks' patterns."""
    for old, new in (
        (_END, r"(?![\w/+=-])"),
        (_BEGIN, ""),
        (_OPERATOR, _PROSE_OPERATOR),
        ("[[:alnum:]]", "[A-Za-z0-9]"),
        (r"\z", r"\Z"),
    ):
        regex = regex.replace(old, new)
    return _scoped(regex)


def _scoped(regex: str) -> str:
    """Turn a flag in the middle of a pattern, which holds to the end of its group, into a group with that flag."""
    at = regex.find("(?i)", 1)
    while at > 0:
        depth, end = 0, at + 4
        while end < len(regex):
            character = regex[end]
            if character == "\\":
                end += 1
            elif character == "(":
                depth += 1
            elif character == ")":
                depth -= 1
                if depth < 0:
                    break
            end += 1
        regex = f"{regex[:at]}(?i:{regex[at + 4 : end]}){regex[end:]}"
        at = regex.find("(?i)", 1)
    return regex


def by_rule(line: str, lower: str) -> Iterator[Found]:
    """Yield what the rules find in a line; `lower` is the line in lower case."""
    for rule in rules():
        if not any(word in lower for word in rule.keywords):
            continue
        for match in compiled(rule.regex).finditer(line):
            group = rule.group or next((n for n, part in enumerate(match.groups(), 1) if part), 0)
            if entropy(match[group]) >= rule.entropy:
                yield Found(match.start(group), match.end(group), rule.id)


def entropy(text: str) -> float:
    """Shannon's entropy in bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
