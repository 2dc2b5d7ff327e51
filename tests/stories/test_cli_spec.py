"""Specs from a terminal (P1, P2, P5)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.spec import list_questions, preset_names
from tests.helpers.cli import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_the_presets_are_listed(shell: Shell) -> None:
    """P5: five presets, the default first."""
    assert [p["name"] for p in shell.json("spec", "list")["presets"]] == list(preset_names())
    assert "anchored" in shell.run("spec", "list")


@pytest.mark.parametrize("name", preset_names())
def test_every_value_is_shown_with_its_origin(shell: Shell, name: str) -> None:
    """P5: explicit, typology default, or deviation with its reason."""
    rows = shell.json("spec", "show", name)["rows"]
    assert all(row["provenance"] for row in rows)
    assert all(row["reason"] for row in rows if row["provenance"] == "deviation")
    assert "[explicit]" in shell.run("spec", "show", name)
    assert "1. Anchor" in shell.run("spec", "explain", name)
    assert shell.json("spec", "explain", name)["name"] == name


def test_a_shown_file_can_be_checked_and_copied(shell: Shell, tmp_path: Path) -> None:
    """P5: `show --toml` prints what `check` accepts."""
    file = tmp_path / "copy.toml"
    file.write_text(shell.run("spec", "show", "observer", "--toml"))
    assert "is valid" in shell.run("spec", "check", str(file))
    assert shell.json("spec", "diff", "observer", str(file))["differences"] == []
    assert "are the same" in shell.run("spec", "diff", "observer", str(file))


def test_check_prints_all_problems_and_fails(shell: Shell, tmp_path: Path) -> None:
    """P1, P2: every missing primitive is named at once, with what to write; exit code 2."""
    file = tmp_path / "bad.toml"
    file.write_text('name = "bad"\n')
    result = shell.call("spec", "check", str(file), "default")
    assert result.exit_code == 2
    for section in ("[anchor]", "[typology]", "[[tiers]]", "[backend]", "[retrieval]"):
        assert section in result.stdout
    checked = shell.json("spec", "check", str(file), "default", code=2)
    assert [f["ok"] for f in checked["files"]] == [False, True]
    assert {p["key"] for p in checked["files"][0]["problems"]} >= {"anchor", "typology", "tiers", "backend"}


@pytest.mark.parametrize("text", ["", "= nonsense", "name = 1", "\x00", "[anchor", 'surprise = "key"'])
def test_a_spec_of_nonsense_is_refused(shell: Shell, tmp_path: Path, text: str) -> None:
    """W9: a typed error, and no workspace is made from it."""
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert shell.fails("workspace", "create", "x", "--spec", str(file), code=2)["code"] == "spec-error"
    assert shell.call("spec", "check", str(file)).exit_code == 2
    assert shell.json("workspace", "list")["workspaces"] == []


def test_an_unknown_key_is_named(shell: Shell, tmp_path: Path) -> None:
    """P5: a misspelt key is not silently without effect."""
    file = tmp_path / "typo.toml"
    file.write_text("taxonomi = 1\n" + shell.run("spec", "show", "default", "--toml"))
    (problem,) = shell.json("spec", "check", str(file), code=2)["files"][0]["problems"]
    assert "taxonomi" in problem["key"]


def test_diff_names_each_difference(shell: Shell) -> None:
    """P5: two specs compared, value by value."""
    found = {d["path"]: d for d in shell.json("spec", "diff", "default", "anchored")["differences"]}
    assert found["name"] == {"path": "name", "left": "default", "right": "anchored"}
    assert "default: default" in shell.run("spec", "diff", "default", "anchored")


def test_unknown_presets_and_files(shell: Shell, tmp_path: Path) -> None:
    assert shell.fails("spec", "show", "defualt", code=2)["code"] == "spec-error"
    assert shell.fails("spec", "show", str(tmp_path / "none.toml"), code=2)["code"] == "invalid-input"
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in shell.fails("spec", "explain", str(binary), code=2)["message"]


def test_new_with_defaults_is_a_usable_spec(shell: Shell) -> None:
    """P5: --yes asks nothing; what is printed is the file and nothing else."""
    text = shell.run("spec", "new", "--yes")
    assert tomllib.loads(text)["name"] == "my-agent"
    assert "is valid" in shell.run("spec", "check", "-", input=text)


def test_new_asks_in_order(shell: Shell) -> None:
    """P5: the questions in the order S4 gives; an answer that needs a reason is asked for one."""
    answers = {
        "name": "desk",
        "behaviour.decay": "workspace",
        "behaviour.decay.workspace": "model = none",
        "behaviour.decay.workspace.reason": "news goes stale",
    }
    asked = list_questions(answers)
    result = shell.call("spec", "new", input="".join(answers.get(q.id, "") + "\n" for q in asked))
    assert result.exit_code == 0, result.output
    at = 0
    for question in asked:
        at = result.stderr.index(question.ask, at)
    made = tomllib.loads(result.stdout)
    assert made["name"] == "desk"
    assert "news goes stale" in json.dumps(made)


def test_new_asks_again_and_says_why(shell: Shell) -> None:
    """P5: an answer that makes no valid spec is asked again with the reason; the next one counts."""
    given = {q.id: [""] for q in list_questions()} | {
        "name": ["Help Desk", "desk"],
        "anchor": ["one?, two?", ""],
        "backend.store": ["clay", "memory"],
    }
    result = shell.call("spec", "new", input="\n".join(line for lines in given.values() for line in lines) + "\n")
    assert result.exit_code == 0, result.output
    assert "'Help Desk' is not a name" in result.stderr
    assert "one of: sqlite, postgres, memory" in result.stderr
    made = tomllib.loads(result.stdout)
    assert (made["name"], made["backend"]["store"]) == ("desk", "memory")


SUPPORT = """
# A support agent: what is known of a ticket, of a customer, and of the tenant who serves the customers.
name = support
like = anchored
anchor = tenant_id, customer_id, ticket
tiers = ticket, customer, tenant
typology.ticket = episodic
typology.customer = semantic, procedural, episodic
tiers.ticket.persistent = no
tiers.ticket.boundary = lifecycle ticket_closed
behaviour.write = semantic
behaviour.write.semantic = mode = explicit
behaviour.write.semantic.reason = The agent notes a fact when a customer states it.
reference_only.non_mirror = tickets, invoices
sanitization = tenant into tenant: strip_identifiers
visibility.customer.external = granted
"""


def test_a_support_agent_by_spec_new_alone(shell: Shell, tmp_path: Path) -> None:
    """P5, P6, W6: a spec with its own anchor, tiers, gates and visibility, made by answers; two tenants use it."""
    file = tmp_path / "support.toml"
    shell.run("spec", "new", "--answers", "-", "-o", str(file), input=SUPPORT)
    assert "is valid" in shell.run("spec", "check", str(file))
    shell.run("workspace", "create", "support", "--spec", str(file))
    scoped = ("-w", "support", "--scope", "tenant_id=acme", "--scope", "customer_id=c1")
    shell.run(*scoped, "put", "The gateway needs a reset after each update", "--tier", "customer")
    with Lukasa.open(shell.data, embedder="none") as memory:
        ours = memory.workspace("support").at(tenant_id="acme", customer_id="c1")
        theirs = memory.workspace("support").at(tenant_id="globex", customer_id="c1")
        theirs.put("customer", "The gateway is leased until May")
        put = theirs.put("tenant", "Write to ada@globex.example about every refund")
        assert put.entry is not None
        assert put.entry.content == "Write to [email] about every refund"
        assert [hit.content for hit in ours.read("gateway")] == ["The gateway needs a reset after each update"]
        assert [hit.content for hit in theirs.read("gateway")] == ["The gateway is leased until May"]
    assert "leased" not in shell.run(*scoped, "read", "gateway")
    other = ("-w", "support", "--scope", "tenant_id=globex", "--scope", "customer_id=c1")
    assert "reset" not in shell.run(*other, "read", "gateway")
    wide = ("-w", "support", "--scope", "tenant_id=acme")
    refused = shell.fails(*wide, "put", "no customer", "--tier", "customer", code=2)
    assert "customer_id" in refused["message"]


def test_the_questions_are_listed_for_scripts(shell: Shell) -> None:
    """P5: ids and defaults of the questions, which follow from the answers before."""
    listed = shell.json("spec", "new", "--yes", "--questions", "--set", "anchor=tenant_id, customer_id")["questions"]
    found = {question["id"]: question["default"] for question in listed}
    assert found["tiers"] == "customer, tenant"
    assert found["tiers.customer.anchor"] == "tenant_id, customer_id"
    assert found["sanitization"] == "none"


def test_new_into_a_file_never_overwrites_unasked(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert "spec explain" in shell.run("spec", "new", "--yes", "-o", str(file))
    before = file.read_text()
    assert "--force" in shell.fails("spec", "new", "--yes", "--set", "name=other", "-o", str(file), code=2)["fix"]
    assert file.read_text() == before
    assert shell.json("spec", "new", "--yes", "--force", "--set", "name=other", "-o", str(file))["file"] == str(file)
    assert tomllib.loads(file.read_text())["name"] == "other"
    assert shell.fails("spec", "new", "--yes", "-o", str(tmp_path / "no" / "x.toml"), code=2)["code"] == "invalid-input"


def test_new_with_wrong_answers(shell: Shell) -> None:
    assert shell.fails("spec", "new", "--yes", "--set", "colour=blue", code=2)["code"] == "spec-error"
    assert shell.fails("spec", "new", "--yes", "--set", "backend.store=clay", code=2)["code"] == "spec-error"
    assert shell.fails("spec", "new", "--yes", "--set", "name", code=2)["code"] == "invalid-input"
    assert "--yes" in shell.call("spec", "new", input="desk\n").stderr
