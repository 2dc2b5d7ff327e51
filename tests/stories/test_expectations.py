"""Memory CI: expectations over a memory as a file, with an exit code (B18)."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lukasa import Lukasa
from lukasa.model.disclosure import DisclosureQuery
from lukasa.spec.expectations import EXAMPLE, parse
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock

PORT = "The port of staging is 8443"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "memory.expect.toml"
    path.write_text(text, "utf-8")
    return str(path)


ALL = """
[[recall]]
name = "port"
query = "port of staging"
finds = "8443"
first = true
[[recall]]
name = "as of"
query = "port of staging"
finds = "8443"
as_of = "2099-01-01"
[[recall]]
name = "old port"
query = "port of staging"
absent = "8080"
[[context]]
name = "budget"
queries = ["", "staging"]
at_most_tokens = 2000
never = "hunter2"
[[never]]
name = "keys"
pattern = "AKIA[0-9A-Z]{16}"
[[entries]]
name = "web"
where = { authority = "act", source = "web", withdrawn = false }
none = true
[[entries]]
name = "some"
where = { kind = ["semantic", "procedural"], tier = "workspace" }
at_least = 1
"""


def test_a_memory_holds_what_is_expected_until_somebody_spoils_it(shell: Shell, tmp_path: Path) -> None:
    """B18: code 0 while all hold; then 1, with what was found instead and a command that explains it."""
    id = shell.json("put", PORT)["id"]
    expected = file(tmp_path, ALL)
    assert shell.json("assert", expected)["failed"] == 0
    spoiled = shell.json("put", "The port of staging may be 8080 says a page", "--source", "web")["id"]
    shell.run("put", "The uploader uses hunter2 for staging")
    shell.run("forget", id)
    report = tmp_path / "out.xml"
    told = shell.json("assert", expected, "--junit", str(report), code=1)
    failed = {one["name"]: one for one in told["expectations"] if not one["holds"]}
    assert set(failed) == {"port", "as of", "old port", "budget", "web"}
    assert "first is: The port of staging may be 8080" in failed["port"]["said"]
    assert failed["port"]["explain"] == [f"lukasa -w main why 'port of staging' {id}"]
    assert spoiled in failed["old port"]["explain"][0]
    assert "holds 'hunter2'" in failed["budget"]["said"]
    assert "1 entry meets the conditions, expected none" in failed["web"]["said"]
    assert failed["web"]["explain"] == [f"lukasa -w main get {spoiled}"]
    for one in failed.values():  # each command runs as it is printed
        shell.run(*shlex.split(one["explain"][0])[1:])
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("7", "5")
    assert {case.get("name") for case in suite if case.find("failure") is not None} == set(failed)


def test_memory_as_of_a_moment(tmp_path: Path, clock: FixedClock) -> None:
    """B18: what was true then is true as of then, and not any more."""
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock) as memory:
        novel = memory.workspace("novel")
        old = novel.put("workspace", "The port of staging is 8080").id
        novel.bookmark("before")
        clock.time += timedelta(days=30)
        novel.put("workspace", PORT, supersedes=old)
        asked = "[[recall]]\nquery = 'port of staging'\nfinds = '8080'\nfirst = true\n"
        when = [f"{asked}as_of = '{moment}'" for moment in ("2026-11-20", "before", "2026-12-30")]
        outcomes = novel.expect(parse("\n".join(when)))
    assert [one.holds for one in outcomes] == [True, True, False]
    assert "first is: The port of staging is 8443" in outcomes[2].said


def test_a_check_leaves_no_trace(shell: Shell, tmp_path: Path) -> None:
    """B18: no access count, no line in the disclosure ledger, and the log of changes stays as it is."""
    id = shell.json("put", PORT)["id"]
    before = shell.json("events")
    shell.run("assert", file(tmp_path, ALL))
    assert shell.json("events") == before
    with Lukasa.open(shell.data, embedder="none") as memory:
        local = memory.workspace().ctx.local
        assert (local.access([id]), local.disclosures(DisclosureQuery())) == ({}, [])


def test_an_expectation_is_asked_as_an_agent_or_a_grant(shell: Shell, tmp_path: Path) -> None:
    """B18: an agent does not see what is private to another, and a grant sees its tiers alone."""
    shell.run("--agent", "scout", "put", PORT, "--owner", "scout")
    shell.run("put", "Olga steers the ferry", "--tier", "account")
    shell.run("grant", "create", "dash", "--workspace", "main", "--can", "read", "--tier", "workspace")
    port, ferry = "query = 'port of staging'\nabsent = '8443'", "query = 'who steers?'\nabsent = 'Olga'"
    asked = [("scout", "as", port), ("bot", "as", port), ("dash", "grant", ferry), ("bot", "as", ferry)]
    text = "\n".join(f"[[recall]]\nname = '{n}'\n{how} = '{who}'\n{q}" for n, (who, how, q) in enumerate(asked))
    told = shell.json("assert", file(tmp_path, text), code=1)["expectations"]
    assert [one["holds"] for one in told] == [False, True, True, False]


def test_a_workspace_is_named_by_the_file_or_by_the_call(shell: Shell, tmp_path: Path) -> None:
    """B18: the option comes before the file, and a workspace that is not there is a fault of the file."""
    for name in ("novel", "essay"):
        shell.run("workspace", "create", name)
    shell.run("-w", "novel", "put", PORT)
    expected = file(tmp_path, "workspace = 'novel'\n[[recall]]\nquery = 'port'\nfinds = '8443'")
    assert "1 of 1" in shell.run("assert", expected)
    assert shell.json("-w", "essay", "assert", expected, code=1)["failed"] == 1
    gone = file(tmp_path, "workspace = 'gone'\n[[recall]]\nquery = 'port'\nfinds = '8443'")
    assert "no workspace 'gone'" in shell.fails("assert", gone, code=2)["message"]


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        (
            "[[recal]]\nquery = 'x'\nfinds = 'y'",
            "recal: unknown key; did you mean 'recall'",
            "rename it to: [[recall]]",
        ),
        ("[[recall]]\nquery = 3\nfinds = 'y'", "recall[1].query: expected text, found 3", "write: query = "),
        ("[[recall]]\nquery = 'x'", "recall[1].finds: missing", "write: finds = "),
        ("[[recall]]\nquery = 'x'\nfinds = 'a'\nabsent = 'b'", "give 'finds' or 'absent', not both", "absent"),
        ("[[recall]]\nquery = 'x'\nfinds = 'a'\nas_of = 'soon'", "recall[1]: 'soon' is no bookmark and no time", ""),
        ("[[recall]]\nquery = 'x'\nfinds = 'a'\ntiers = ['worksapce']", "unknown tier 'worksapce'", "workspace"),
        ("[[recall]]\nquery = 'x'\nfinds = 'a'\nscope = { org = 'b' }", "unknown scope key 'org'", "use one of"),
        ("[[entries]]\nwhere = { authorty = 'act' }\nnone = true", "did you mean 'authority'", "authority = …"),
        ("[[entries]]\nwhere = { trust = 'high' }\nnone = true", "expected one of untrusted", "trust = "),
        ("[[entries]]\nwhere = { kind = 'semantic' }", "missing: none, exactly", "none = true"),
        ("[[entries]]\nexactly = 1\nat_least = 2", "give 'exactly' or 'at_least', not both", "true"),
        ("[[entries]]\nat_least = 3\nat_most = 2", "2 is less than at_least", "at_most = 3"),
        ("[[never]]\npattern = '('", "not a regular expression", "pattern = "),
        ("[[context]]\nquery = 'x'", "missing: `contains`, `never` or `at_most_tokens`", "contains = "),
        ("", "the file expects nothing", "[[recall]]"),
        ("[[recall", "not TOML", "--example"),
    ],
)
def test_a_wrong_file_says_what_to_write(shell: Shell, tmp_path: Path, text: str, said: str, fix: str) -> None:
    """B18: code 2, with the key that is wrong and the line to put there."""
    error = shell.fails("assert", file(tmp_path, text), code=2)
    assert error["code"] == "expectations-error"
    assert said in error["message"]
    assert fix in error["fix"]


def test_the_example_is_a_file_that_holds(shell: Shell, tmp_path: Path) -> None:
    """B18: what `--example` prints is read as it stands, also from a program."""
    shell.run("put", PORT)
    assert shell.run("assert", "--example") == EXAMPLE
    assert shell.json("assert", file(tmp_path, EXAMPLE))["failed"] == 0
    with Lukasa.open(shell.data, embedder="none") as memory:
        assert all(one.holds for one in memory.workspace().expect(parse(EXAMPLE)))
    assert shell.fails("assert", str(tmp_path / "gone.toml"), code=2)["fix"]
