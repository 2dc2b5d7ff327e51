"""Remembering and recalling from a terminal (U2, W1, W2, R8, M3, M9, B2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.cli import Shell, strict

VILLAIN = "The villain is called Malachar"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_what_is_put_is_read(shell: Shell) -> None:
    """U2, R8: a hit says what it is, how far to believe it, and why it matched."""
    id = shell.put(VILLAIN, "--importance", "0.8")
    out = shell.run("read", "who is the villain?")
    assert VILLAIN in out
    assert id in out
    assert "It has “villain”." in out
    assert "importance 0.80" in out
    assert "authority act" in out


def test_of_a_long_hit_the_place_that_was_asked_for_is_shown(shell: Shell) -> None:
    """U2, R8: not pages of it; where it stands, and how to see the rest, are told. As data it is whole."""
    long = f"{'It rained again. ' * 90}{VILLAIN}. {'Then it snowed. ' * 90}".strip()
    id = shell.put(long)
    out = shell.run("read", "who is the villain?")
    assert VILLAIN in out
    assert len(out) < 1_200
    assert f"of {len(long):,}; `lukasa get {id}` shows all" in out
    assert long in shell.run("get", id)
    (hit,) = shell.json("read", "villain")["hits"]
    assert hit["entry"]["content"] == long
    assert VILLAIN in hit["excerpt"]
    assert hit["excerpt"] in long
    shell.put("A short one about Malachar")
    assert "shows all" not in shell.run("read", "short one", "--limit", "1")
    assert shell.json("read", "short one", "--limit", "1")["hits"][0]["excerpt"] is None


def test_a_context_says_which_part_of_a_long_entry_it_shows(shell: Shell) -> None:
    """C2, U2: an entry that no budget has room for is shown where the question's words stand."""
    long = f"{'It rained again. ' * 200}{VILLAIN}. {'Then it snowed. ' * 200}".strip()
    shell.put(long)
    out = shell.run("context", "who is the villain?", "--why")
    assert f"{VILLAIN}." in out
    assert f"/{len(long)}]" in out
    assert f"/{len(long)} of it" in out
    (recalled,) = shell.json("context", "who is the villain?")["document"]["recalled"]
    assert recalled["items"][0]["part"].endswith(f"/{len(long)}")


def test_read_as_json_carries_everything_a_hit_must(shell: Shell) -> None:
    """R8: curator, tier, kind, importance, relevance, each signal's rank and score, provenance."""
    shell.put(VILLAIN)
    found = shell.json("read", "villain")
    (hit,) = found["hits"]
    assert {"entry", "score", "matched", "access", "provenance"} <= set(hit)
    assert {"curator", "tier", "kind", "importance", "authority", "origin"} <= set(hit["entry"])
    assert {"final", "match", "prior", "decay", "frequency", "relevance", "tier_weight"} <= set(hit["score"])
    assert hit["matched"][0] == {"signal": "keyword", "rank": 1} | {
        key: hit["matched"][0][key] for key in ("score", "share", "percent")
    }
    assert hit["access"]["count"] == 1
    assert hit["entry"]["origin"]["surface"] == "cli"


def test_reading_without_counting(shell: Shell) -> None:
    """D6: --no-count leaves the statistics alone."""
    id = shell.put(VILLAIN)
    shell.run("read", "villain", "--no-count")
    assert shell.json("standing", id)["access"] is None
    shell.run("read", "villain")
    assert shell.json("standing", id)["access"]["count"] == 1


def test_explain_shows_every_factor(shell: Shell) -> None:
    """R8, D5: the score is the product of the factors shown."""
    shell.put(VILLAIN)
    out = shell.run("read", "villain", "--explain")
    assert "match 1.000 × prior" in out
    assert "importance 0.50 × decay 1.0000 × frequency 1.000" in out


def test_an_empty_memory_says_what_to_do(shell: Shell) -> None:
    """U2: an empty state is not an error, and names the next step."""
    assert "Nothing found." in shell.run("read", "anything")
    assert "lukasa put" in shell.run("list")
    assert shell.json("list")["entries"] == []


def test_a_discard_is_no_failure_but_says_so(shell: Shell) -> None:
    """W2: a spec may apply the rules of form to every put: discarded with the reason, exit code 0, traceable by id."""
    strict(shell)
    out = shell.run("put", "too short")
    assert out.startswith("discarded: shorter than 12 characters")
    id = shell.json("put", "short too")["id"]
    life = shell.run("why", id)
    assert "entry.discarded" in life
    assert "shorter than 12 characters" in life
    assert shell.json("list", "--all")["entries"] == []


def test_a_hold_says_so_and_how_to_see_it(shell: Shell) -> None:
    """W2, B2: what an agent may not decide is held, seen on request, and decided by a person."""
    english = shell.put("The project language is English", "--kind", "semantic")
    held = shell.call("--agent", "scout", "put", "The project language is German", "--kind", "semantic")
    assert held.exit_code == 0
    assert held.stdout.startswith("held ")
    assert "--held" in held.stdout
    (entry,) = shell.json("list", "--state", "held")["entries"]
    assert shell.json("read", "german")["hits"] == []
    assert len(shell.json("read", "german", "--held")["hits"]) == 1
    assert f"lukasa accept {entry['id']}" in held.stdout
    assert english in shell.run("why", entry["id"])
    assert english in shell.run("accept", entry["id"])
    assert shell.json("get", entry["id"])["state"] == "active"
    (pair,) = shell.json("review", "list")["rivals"]
    assert {pair["earlier"]["id"], pair["later"]["id"]} == {english, entry["id"]}
    shell.run("review", "settle", entry["id"], english, "--keep", "new")
    assert [hit["entry"]["id"] for hit in shell.json("read", "project language")["hits"]] == [entry["id"]]


@pytest.fixture
def held(shell: Shell) -> str:
    """An entry that waits for a person: a copy of a document."""
    body = "Every release needs two reviewers and a written plan for rolling it back."
    shell.run("document", "add", "rules", "-", input=body)
    result = shell.json("--agent", "scout", "put", body)
    assert result["outcome"] == "held"
    return str(result["id"])


def test_accept_lets_a_held_entry_in(shell: Shell, held: str) -> None:
    """B2, X2: from then on it is recalled, with the person's reason in its life; its trust has not risen."""
    out = shell.run("accept", held, "--reason", "we want it at hand")
    assert out == f"accepted {held}\n"
    (hit,) = shell.json("read", "reviewers")["hits"]
    assert (hit["entry"]["id"], hit["entry"]["trust"]) == (held, "agent")
    last = shell.json("why", held)["events"][-1]
    assert (last["action"], last["detail"]["cause"]) == ("entry.accepted", "we want it at hand")


def test_accept_is_the_authors(shell: Shell, held: str) -> None:
    """B2: an agent is refused, and nothing has changed."""
    assert shell.fails("--agent", "scout", "accept", held, code=1)["code"] == "refused"
    assert shell.json("get", held)["state"] == "held"


def test_accept_is_for_what_is_held(shell: Shell, held: str) -> None:
    """B2: neither an active entry nor an accepted one; and to restore a held one names the right command."""
    refusal = shell.fails("restore", held, code=1)
    assert f"lukasa accept {held}" in refusal["fix"]
    shell.run("accept", held)
    for id in (held, shell.put(VILLAIN)):
        assert shell.fails("accept", id, code=1)["code"] == "invalid-transition"


def test_an_update_that_is_held_says_so(shell: Shell, held: str) -> None:
    """W2: whatever the verb, a hold is the first word of the answer."""
    id = json.loads(shell.call("--agent", "scout", "put", VILLAIN, "--json").stdout)["id"]
    body = "Every release needs two reviewers and a written plan for rolling it all back."
    assert shell.run("--agent", "scout", "update", id, "--content", body).startswith(f"held {id}: repeats")
    assert shell.run("update", id, "--importance", "0.6").startswith(f"held {id}: repeats")


def test_a_repetition_is_merged(shell: Shell) -> None:
    """W3: the same text again is one entry, stated twice."""
    id = shell.put(VILLAIN)
    out = shell.run("put", "the villain is called  MALACHAR.")
    assert f"merged with {id}, now stated 2 times" in out


def test_a_correction_names_what_it_may_replace(shell: Shell) -> None:
    """W4: the old fact stays, and a read shows it under the new one with its date."""
    old = shell.put(VILLAIN)
    out = shell.run("put", "The villain is called Vexis")
    assert f"beside {old}: they give the same thing two names" in out
    assert shell.json("get", old)["state"] == "active"
    (hit,) = shell.json("read", "villain")["hits"]
    assert hit["entry"]["content"] == "The villain is called Vexis"
    assert [(e["id"], e["relation"], e["note"]) for e in hit["earlier"]] == [(old, "update", "may no longer hold")]
    assert f"earlier, may no longer hold ({hit['earlier'][0]['said'][:10]}): {VILLAIN}" in shell.run("read", "villain")


def test_an_edit_names_what_it_may_replace(shell: Shell) -> None:
    """W4: an edit is compared as a new statement is; edited to something else, the two have nothing in common."""
    old = shell.put(VILLAIN)
    id = shell.put("The harbour has three lighthouses")
    out = shell.run("update", id, "--content", "The villain is called Vexis")
    assert out.startswith(f"updated {id}, now at version 2\n  beside {old}: ")
    assert [r["entry"]["id"] for r in shell.json("history", id)["rivals"]] == [old]
    shell.run("update", id, "--content", "The harbour has four lighthouses")
    assert shell.json("history", id)["rivals"] == shell.json("history", old)["rivals"] == []


def test_a_person_decides_between_two(shell: Shell) -> None:
    """B4, W4: the inbox asks about both; a decision retires one of them, or is remembered."""
    old = shell.put(VILLAIN)
    new = shell.json("put", "The villain is called Vexis")["id"]
    assert "Nothing to review" not in shell.run("review", "list")
    (pair,) = shell.json("review", "list")["rivals"]
    assert (pair["earlier"]["id"], pair["later"]["id"]) == (old, new)
    assert shell.json("review", "settle", new, old, "--keep", "both")["outcome"] == "both"
    assert shell.json("review", "list")["rivals"] == []
    assert len(shell.json("read", "villain")["hits"]) == 2
    assert "holds too" in shell.run("history", old)
    other = shell.json("put", "The heroine is called Ada")["id"]
    newer = shell.json("put", "The heroine is called Mira")["id"]
    assert shell.json("review", "settle", other, newer, "--keep", "old")["replaces"] == [newer]
    assert shell.json("get", newer)["state"] == "invalidated"
    assert "wait for no decision" in shell.fails("review", "settle", other, old, "--keep", "new", code=1)["message"]
    assert "already" in shell.fails("review", "settle", other, newer, "--keep", "new", code=1)["message"]


def test_a_repetition_is_kept_as_a_confirmation(shell: Shell) -> None:
    """W3: who said it again, when and in which words."""
    id = shell.put(VILLAIN)
    shell.run("put", VILLAIN.upper())
    (again,) = shell.json("history", id)["confirmations"]
    assert (again["said"], again["speaker"]) == (VILLAIN.upper(), "user")
    assert "stated again" in shell.run("history", id)


def test_supersedes_by_id(shell: Shell) -> None:
    """W4: --supersedes replaces an entry that no rule would have found."""
    old = shell.put("We ship on Fridays, after lunch")
    result = shell.json("put", "Releases happen whenever they are ready", "--supersedes", old)
    assert (result["outcome"], result["replaces"]) == ("replaced", [old])
    assert shell.json("get", old)["superseded_by"] == result["id"]


def test_put_takes_every_property(shell: Shell) -> None:
    """M2: what the options say is what the entry has."""
    base = shell.put("The archive has three floors and a cellar")
    shell.run("document", "add", "plans", "-", input="The plans of the archive, drawn by Ilse")
    options = ("--kind", "episodic", "--importance", "0.7", "--lifetime", "short_term", "--tag", "a", "--tag", "b")
    more = ("--source", "survey", "--link", "plans", "--derived-from", base, "--valid-at", "2026-01-31")
    last = ("--owner", "scout", "--metadata", '{"page": 3}')
    entry = shell.json("put", "The cellar floods every spring since then", *options, *more, *last)["entry"]
    assert (entry["kind"], entry["importance"], entry["lifetime"]) == ("episodic", 0.7, "short_term")
    assert (entry["tags"], entry["source"], entry["owner"]) == (["a", "b"], "survey", "scout")
    assert (entry["derived_from"], entry["metadata"]) == ([base], {"page": 3})
    assert entry["links"] == [{"source": "plans", "version": 1, "locator": "", "checked": 0}]
    assert entry["valid_at"] == "2026-01-31T00:00:00+00:00"


def test_put_from_stdin(shell: Shell) -> None:
    """U2: `-` reads the text; the line break at its end is not part of it."""
    assert shell.json("put", "-", input="Vell is built on chains\n")["entry"]["content"] == "Vell is built on chains"


def test_the_default_tier_follows_the_spec(shell: Shell) -> None:
    """U2, P6: without --tier it is the workspace; in another spec, its broadest lasting tier."""
    shell.run("workspace", "create", "desk", "--preset", "anchored")
    scope = ("-w", "desk", "--scope", "org_id=acme", "--scope", "domain_id=tax")
    entry = shell.json(*scope, "put", "Returns are due at the end of May")["entry"]
    assert entry["scope"] == {"tier": "persistent", "org_id": "acme", "domain_id": "tax"}
    assert shell.fails("-w", "desk", "put", "Returns are due in May", code=2)["code"] == "invalid-scope"


def test_get_shows_an_entry_in_full(shell: Shell) -> None:
    id = shell.put(VILLAIN, "--tag", "plot")
    out = shell.run("get", id)
    assert VILLAIN in out
    assert "#plot" in out
    assert "through cli" in out


def test_list_filters(shell: Shell) -> None:
    """R1: structured conditions, all of which must hold."""
    kept = shell.put(VILLAIN, "--tag", "plot", "--source", "notes")
    gone = shell.put("The harbour freezes in January", "--tag", "setting")
    shell.run("forget", gone, "--reason", "it thaws")
    for condition in (("--tag", "plot"), ("--source", "notes"), ("--kind", "semantic"), ("--curator", "author")):
        assert [e["id"] for e in shell.json("list", *condition)["entries"]] == [kept]
    assert shell.json("list", "--until", "2020-01-01")["entries"] == []
    assert len(shell.json("list", "--since", "2020-01-01", "--all")["entries"]) == 2
    assert len(shell.json("list", "--all", "--limit", "1")["entries"]) == 1
    assert shell.json("list", "--all", "--after", kept)["entries"] == []


def test_update_changes_only_what_is_named(shell: Shell) -> None:
    """W1: a patch; its former form stays in the history."""
    id = shell.put(VILLAIN, "--tag", "plot")
    entry = shell.json("update", id, "--importance", "0.9", "--tag", "cast")["entry"]
    assert (entry["importance"], entry["tags"], entry["content"]) == (0.9, ["cast"], VILLAIN)
    out = shell.run("update", id, "--content", "-", "--expect", "2", input="The villain is called Vexis\n")
    assert "version 3" in out
    assert VILLAIN in shell.run("history", id)
    assert [v["entry"]["importance"] for v in shell.json("history", id)["versions"]] == [0.5, 0.9, 0.9]


def test_update_expecting_another_version_is_a_conflict(shell: Shell) -> None:
    """U2: exit code 1, and nothing changed."""
    id = shell.put(VILLAIN)
    assert shell.fails("update", id, "--importance", "0.9", "--expect", "7", code=1)["code"] == "conflict"
    assert shell.json("get", id)["version"] == 1


def test_forget_and_restore(shell: Shell) -> None:
    """M3: a state, not a deletion."""
    id = shell.put(VILLAIN)
    assert f"lukasa restore {id}" in shell.run("forget", id, "--reason", "wrong book")
    assert shell.json("read", "villain")["hits"] == []
    assert "wrong book" in shell.run("get", id)
    shell.run("restore", id)
    assert len(shell.json("read", "villain")["hits"]) == 1


def test_why_traces_a_read(shell: Shell) -> None:
    """R8: every stage, for a hit, for a miss, and for what is not in the race."""
    id = shell.put(VILLAIN)
    out = shell.run("why", "who is the villain?", id)
    assert "So it was returned." in out
    missed = shell.json("why", "harbour weather", id)
    assert missed["returned"] is False
    assert {s["step"] for s in missed["stages"]} >= {"scope", "state", "keyword"}
    shell.run("forget", id)
    assert "So it was not returned." in shell.run("why", "villain", id)


def test_why_of_an_id_is_its_life(shell: Shell) -> None:
    """R8, X2: every event with the steps that decided it."""
    id = shell.put(VILLAIN)
    shell.run("forget", id)
    events = shell.json("why", id)["events"]
    assert [event["action"] for event in events] == ["entry.put", "entry.forgotten"]
    assert "no rule speaks against it" in shell.run("why", id)


def test_standing_shows_the_factors(shell: Shell) -> None:
    """D1: relevance = importance × decay × frequency."""
    id = shell.put(VILLAIN, "--importance", "0.8")
    found = shell.json("standing", id)
    assert found["relevance"] == pytest.approx(0.8 * found["decay"] * found["frequency"])
    assert "× decay" in shell.run("standing", id)


def test_an_agents_private_entry_is_its_own(shell: Shell) -> None:
    """M4: another agent does not even learn that it exists."""
    shell.run("--agent", "scout", "put", "Only scout needs to know this one", "--owner", "scout", "--kind", "episodic")
    (entry,) = shell.json("list", "--all")["entries"]
    assert shell.json("--agent", "scout", "get", entry["id"])["owner"] == "scout"
    assert shell.fails("--agent", "other", "get", entry["id"], code=1)["code"] == "not-found"


def test_options_may_stand_before_or_after(shell: Shell) -> None:
    """U2: a shared option after the command wins over one before it."""
    shell.run("workspace", "create", "novel")
    shell.run("-w", "novel", "put", VILLAIN)
    assert len(shell.json("list", "-w", "novel")["entries"]) == 1
    assert len(shell.json("-w", "main", "list", "--workspace", "novel")["entries"]) == 1
    assert shell.json("list")["entries"] == []


def test_context_is_the_text_for_a_prompt(shell: Shell) -> None:
    """C1, C2: named entries whole and first, then what matches; the same call gives the same bytes."""
    shell.put(VILLAIN)
    shell.run("named", "edit", "SOUL", "--file", "-", input="Say what you are sure of.")
    shell.run("named", "edit", "VOICE", "--file", "-", input="Terse.")
    first = shell.run("context", "the villain")
    assert first == shell.run("context", "the villain") == shell.json("context", "the villain")["text"]
    assert first.index("## SOUL") < first.index("## VOICE") < first.index(VILLAIN)


def test_context_why_explains_each_line_and_what_was_left_out(shell: Shell) -> None:
    """C2, C3: a reason for what is in it, and for what did not fit."""
    shell.put(VILLAIN)
    shell.put("Always answer in British English", "--tier", "account", "--kind", "procedural", "--importance", "0.9")
    shell.run("named", "edit", "VOICE", "--file", "-", input="Terse.")
    out = shell.run("context", "the villain", "--why")
    assert "a named entry: always loaded, in full" in out
    assert "a standing rule" in out
    assert "matched by keyword" in out
    tight = shell.json("context", "the villain", "--budget", "1")
    assert {gone["tier"] for gone in tight["evicted"]} == {"account", "workspace"}
    assert "left out: " in shell.run("context", "the villain", "--budget", "1", "--why")


def test_context_of_chosen_tiers(shell: Shell) -> None:
    """C5: a subagent reads only the tiers it names."""
    shell.put(VILLAIN)
    assert shell.json("context", "villain", "--tiers", "account")["document"]["recalled"] == []
    assert shell.fails("context", "--tiers", "attic", code=2)["code"] == "invalid-scope"


def test_context_of_a_profile(shell: Shell) -> None:
    """C2, R6: the profile bounds how much of each tier is shown; an unknown one is refused."""
    for number in range(12):
        shell.put(f"Lighthouse {number} was painted in the year {1800 + number}")
    shown = {
        profile: len(
            shell.json("context", "lighthouse painted", "--profile", profile)["document"]["recalled"][0]["items"]
        )
        for profile in ("balanced", "deep")
    }
    assert shown == {"balanced": 10, "deep": 12}
    assert shell.fails("context", "--profile", "huge", code=2)["code"] == "invalid-query"


def test_context_counts_only_if_asked(shell: Shell) -> None:
    """C1, D6."""
    id = shell.put(VILLAIN)
    shell.run("context", "villain")
    assert shell.json("standing", id)["access"] is None
    shell.run("context", "villain", "--count")
    assert shell.json("standing", id)["access"]["count"] == 1
