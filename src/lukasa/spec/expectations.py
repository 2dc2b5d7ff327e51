"""Expectations over a memory, as a file: what a read finds, what no context may hold, how many entries there are.

`parse` reads the TOML strictly: every unknown key, wrong type and contradiction is a problem that says what to write.
"""

from __future__ import annotations

import re
import tomllib

from msgspec import Struct, field

from lukasa.model.errors import ExpectationsError
from lukasa.model.values import Authority, Curator, Kind, Lifetime, State, Trust
from lukasa.spec.decode import Problems, TomlTable, described, nearest

MOST_QUERIES = 200
TRUSTS = tuple(trust.name.lower() for trust in Trust)
# The conditions of [[entries]] whose words are known; the others take any text.
WORDS: dict[str, tuple[str, ...]] = {
    "authority": tuple(map(str, Authority)),
    "trust": TRUSTS,
    "kind": tuple(map(str, Kind)),
    "state": tuple(map(str, State)),
    "curator": tuple(map(str, Curator)),
    "lifetime": tuple(map(str, Lifetime)),
    "retention": ("active", "referenced", "orphaned", "tombstoned"),
}
TEXTS = ("tier", "category", "source", "surface", "principal", "owner", "speaker", "tag")
FLAGS = ("sensitive", "unverified", "withdrawn", "awaits_check")


class Asker(Struct, frozen=True):
    """Who asks: the owner, an agent by name, or a grant by name or id; and the scope keys that are bound."""

    agent: str = ""
    grant: str = ""
    scope: dict[str, str] = field(default_factory=dict)


class RecallExpectation(Struct, frozen=True):
    """A read finds an entry with a text among the first `within` hits, or, if `absent`, among none of them."""

    name: str
    key: str
    asker: Asker
    query: str
    finds: str
    absent: bool
    within: int
    limit: int
    profile: str
    tiers: tuple[str, ...]
    as_of: str


class ContextExpectation(Struct, frozen=True):
    """A context for each of the queries holds some texts and none of others, and takes at most so many tokens."""

    name: str
    key: str
    asker: Asker
    queries: tuple[str, ...]
    contains: tuple[str, ...]
    never: tuple[str, ...]
    at_most_tokens: int
    budget: int
    tiers: tuple[str, ...]


class NeverExpectation(Struct, frozen=True):
    """No page, and no entry that could enter a context, holds any of the texts or matches the pattern."""

    name: str
    key: str
    asker: Asker
    texts: tuple[str, ...]
    pattern: str


class EntriesExpectation(Struct, frozen=True):
    """So many entries meet all conditions. Each condition lists the words of which one must hold."""

    name: str
    key: str
    asker: Asker
    where: dict[str, tuple[str, ...]]
    contains: str
    at_least: int
    at_most: int  # -1: no limit
    everything: bool


Expectation = RecallExpectation | ContextExpectation | NeverExpectation | EntriesExpectation


class Expectations(Struct, frozen=True):
    """The expectations of a file, in its order by kind, and the workspace that it names."""

    workspace: str
    expectations: tuple[Expectation, ...]
    file: str = ""


def parse(text: str, file: str = "") -> Expectations:
    """Return the expectations of a TOML text; raise the first of its problems."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationsError(f"not TOML: {error}", file=file, fix="see `lukasa assert --example`") from None
    problems = Problems(file, ExpectationsError)
    found = _read(TomlTable(data, "", problems), file)
    if problems.found:
        raise problems.found[0]
    return found


def _read(root: TomlTable, file: str) -> Expectations:
    workspace = root.text("workspace", "", example="main")
    usual = _asker(root, Asker())
    readers = (("recall", _recall), ("context", _context), ("never", _never), ("entries", _entries))
    found: list[Expectation] = []
    for kind, read in readers:
        for number, table in enumerate(root.tables(kind), 1):
            name = table.text("name", f"{kind} {number}", example="the port of staging")
            found.append(read(table, name, _asker(table, usual)))
            table.close()
    root.close()
    if not found and not root.problems.found:
        fix = 'write one, as `[[recall]]` with query = "…" and finds = "…"; see `lukasa assert --example`'
        root.problems.add("", "the file expects nothing", fix)
    return Expectations(workspace, tuple(found), file)


def _asker(table: TomlTable, usual: Asker) -> Asker:
    agent = table.text("as", usual.agent, example="claude-code", blank=True)
    grant = table.text("grant", usual.grant, example="dashboard", blank=True)
    inner = table.table("scope")
    keys = {key: inner.text(key, example="acme") for key in inner.data}
    if "as" in table and "grant" in table:
        table.wrong("grant", "give `as` or `grant`, not both", "dashboard")
    if "as" in table:
        grant = ""
    if "grant" in table:
        agent = ""
    return Asker(agent, grant, {**usual.scope, **keys})


def _tiers(table: TomlTable) -> tuple[str, ...]:
    return table.texts("tiers", (), example=("workspace",))


def _recall(table: TomlTable, name: str, asker: Asker) -> RecallExpectation:
    query = table.text("query", example="port of staging")
    for a, b in (("finds", "absent"), ("first", "within"), ("absent", "first"), ("absent", "within")):
        if a in table and b in table:
            table.wrong(b, f"give {a!r} or {b!r}, not both", 3 if b == "within" else True)
    absent = table.text("absent", "", example="8080", blank=True)
    if "finds" not in table and "absent" not in table:
        table.wrong("finds", "missing: a text of the entry that must be found, or `absent`", "8443")
    first, limit = table.flag("first", False), table.whole("limit", 0)
    return RecallExpectation(
        name,
        table.path,
        asker,
        query,
        table.text("finds", "", example="8443") or absent,
        bool(absent),
        table.whole("within", 1 if first else 0, low=1 if "within" in table else 0, example=3),
        limit,
        table.choice("profile", ("auto", "lean", "balanced", "deep"), "auto"),
        _tiers(table),
        table.text("as_of", "", example="2026-05-01"),
    )


def _several(table: TomlTable, key: str, example: str) -> tuple[str, ...]:
    """A text, or a list of texts."""
    if isinstance(table.data.get(key), str):
        return (table.text(key, example=example),)
    return table.texts(key, (), example=(example,))


def _context(table: TomlTable, name: str, asker: Asker) -> ContextExpectation:
    contains, never = _several(table, "contains", "port of staging"), _several(table, "never", "password")
    most = table.whole("at_most_tokens", 0, low=1 if "at_most_tokens" in table else 0, example=2000)
    if not (contains or never or most):
        table.wrong("contains", "missing: `contains`, `never` or `at_most_tokens`", "port of staging")
    queries = _queries(table)
    if len(queries) > MOST_QUERIES:
        table.wrong("queries", f"at most {MOST_QUERIES} queries", ("deploy",))
    return ContextExpectation(
        name, table.path, asker, queries, contains, never, most, table.whole("budget", 0), _tiers(table)
    )


def _queries(table: TomlTable) -> tuple[str, ...]:
    """The query, or several of them; the empty one asks for what always holds, and is asked without any."""
    if "query" in table and "queries" in table:
        table.wrong("queries", "give `query` or `queries`, not both", ("deploy", "release"))
    one, several = table.text("query", "", example="deploy", blank=True), table.take("queries")
    if "queries" not in table:
        return (one,)
    if not isinstance(several, list) or not several or not all(isinstance(query, str) for query in several):
        table.wrong("queries", f"expected a list of texts, found {described(several)}", ("", "deploy"))
        return ("",)
    return tuple(several)


def _never(table: TomlTable, name: str, asker: Asker) -> NeverExpectation:
    texts, pattern = _several(table, "text", "hunter2"), table.text("pattern", "", example="AKIA[0-9A-Z]{16}")
    if not texts and not pattern:
        table.wrong("text", "missing: a `text` or a `pattern` that nothing may hold", "hunter2")
    try:
        re.compile(pattern)
    except re.error as error:
        table.wrong("pattern", f"not a regular expression: {error}", "AKIA[0-9A-Z]{16}")
        pattern = ""
    return NeverExpectation(name, table.path, asker, texts, pattern)


def _entries(table: TomlTable, name: str, asker: Asker) -> EntriesExpectation:
    inner = table.table("where")
    where: dict[str, tuple[str, ...]] = {}
    for key, options in WORDS.items():
        if key in inner:
            where[key] = _words(inner, key, options)
    for key in TEXTS:
        if key in inner:
            where[key] = _several(inner, key, "import")
    for key in FLAGS:
        if key in inner:
            where[key] = ("true" if inner.flag(key) else "false",)
    known = {*WORDS, *TEXTS, *FLAGS}
    for key in inner.data.keys() - known:
        meant = nearest(key, known)
        hint = f"; did you mean {meant!r}?" if meant else ""
        fix = f"rename it to: {meant} = …" if meant else f"use one of: {', '.join(sorted(known))}"
        inner.problems.add(inner.at(key), f"unknown condition{hint}", fix)
    contains = table.text("contains", "", example="8443")
    none = table.flag("none", False)
    bounds = [key for key in ("none", "exactly", "at_least", "at_most") if key in table]
    clash = len(bounds) > 1 and set(bounds) != {"at_least", "at_most"}
    if not bounds or clash:
        absent = "missing: none, exactly, at_least or at_most"
        said = f"give {' or '.join(map(repr, bounds))}, not both" if clash else absent
        table.wrong(bounds[-1] if clash else "none", said, True)
    exact = table.whole("exactly", -1) if "exactly" in table else -1
    least, most = table.whole("at_least", 0), table.whole("at_most", 0) if "at_most" in table else -1
    for key in ("exactly", "at_most"):
        table.take(key)
    if 0 <= most < least:
        table.wrong("at_most", f"{most} is less than at_least, which is {least}", least)
    if none or exact >= 0:
        least = most = 0 if none else exact
    return EntriesExpectation(name, table.path, asker, where, contains, least, most, table.flag("everything", False))


def _words(table: TomlTable, key: str, options: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(table.data.get(key), str):
        return (table.choice(key, options),)
    return table.choices(key, options, example=options[:1])


EXAMPLE = """# What this memory must know, and what must never leave it. Run it with: lukasa assert memory.expect.toml
# workspace = "main"        # or `lukasa -w NAME assert …`
# as = "claude-code"        # ask as this agent; or grant = "NAME"; both also in each table below
# scope = { org_id = "acme" }

[[recall]]                  # a read finds an entry that holds a text
name = "the port of staging"
query = "port of staging"
finds = "8443"              # case and line breaks do not matter
first = true                # or within = 3; without both, any hit will do
# as_of = "2026-05-01"      # as memory stood then: the entry must have held at that time
# tiers = ["workspace"]
# limit = 10
# profile = "deep"

[[recall]]
name = "the old port is gone"
query = "port of staging"
absent = "8080"             # no hit may hold it

[[context]]                 # contexts, as an agent gets them
name = "a start fits its budget"
queries = ["", "deploy to staging"]
at_most_tokens = 2000
# contains = "8443"         # a text or a list; each context must hold all of them
# never = ["do not share"]  # none may hold any of them

[[never]]                   # all pages, and all entries that could enter a context
name = "no key of the cloud"
pattern = "AKIA[0-9A-Z]{16}"
# text = ["hunter2"]

[[entries]]                 # how many entries meet all conditions
name = "nothing from the web may be acted on"
where = { authority = "act", source = "web" }
none = true                 # or exactly, at_least, at_most
# everything = true         # also held and retired entries
# Conditions: authority, trust, kind, state, curator, lifetime, retention, tier, category, source, surface, principal,
# owner, speaker, tag (each a text or a list), and sensitive, unverified, withdrawn, awaits_check (true or false).
"""
