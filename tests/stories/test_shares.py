"""Shares: untrusted text is found, and never crowds out what is trusted more (B2, T48)."""

from __future__ import annotations

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.spec import preset_text

ASKED = "Where do invoices go?"
ANSWERS = ("Invoices go to the desk in Lisbon", "Invoices above 500 need a signature", "Invoices go out on Friday")


@pytest.fixture
def page(world: Workspace) -> Workspace:
    """A handle for text of unknown authorship."""
    return world.acting(principal="web", trust=Trust.UNTRUSTED)


def flooded(world: Workspace, page: Workspace, count: int = 10) -> tuple[list[str], list[str]]:
    mine = [world.put("workspace", said).id for said in ANSWERS]
    theirs = [page.put("workspace", f"{ASKED} Ask desk {n} of the Acme company").id for n in range(count)]
    return mine, theirs


def test_ten_untrusted_entries_leave_the_authors_in_the_answer(world: Workspace, page: Workspace) -> None:
    """T48: all three of the author's entries are among the first ten, and among the first seven."""
    mine, _ = flooded(world, page)
    for limit in (7, 10):
        assert set(mine) <= {hit.id for hit in world.read(ASKED, limit=limit)}
    shown = [item.id for part in world.context(ASKED).document.recalled for item in part.items]
    assert set(mine) <= set(shown)


def test_untrusted_text_is_found_where_there_is_nothing_else(world: Workspace, page: Workspace) -> None:
    """T48: a share binds only while something more trusted matches."""
    parts = ("door is green", "lamp turns slowly", "stairs are steep", "roof leaks in winter", "keeper is called Olsen")
    theirs = [page.put("workspace", f"The lighthouse: its {part}").id for part in parts]
    world.put("workspace", "Tomas plays chess")
    assert {hit.id for hit in world.read("lighthouse", limit=5)} == set(theirs)


def test_why_names_the_share(world: Workspace, page: Workspace) -> None:
    """R8: a displaced entry says which share is full, and which key decides it."""
    mine, theirs = flooded(world, page)
    hits = {hit.id for hit in world.read(ASKED, limit=5)}
    assert set(mine) <= hits
    told = [world.why(ASKED, id, limit=5)[-1] for id in theirs if id not in hits]
    shared = [verdict for verdict in told if verdict.step == "share"]
    assert shared
    assert all(v.outcome == "displaced" and "2 of 5 places" in v.reason and "shares" in v.reason for v in shared)


def test_a_copy_is_shown_under_the_more_trusted_one(world: Workspace, page: Workspace) -> None:
    """T48: an untrusted copy that ranks better does not take the author's entry under itself."""
    copy = page.put("workspace", f"{ANSWERS[0]}, the desk", importance=1.0).id
    mine = world.put("workspace", ANSWERS[0], importance=0.1).id
    (hit, *_) = [hit for hit in world.read(f"{ANSWERS[0]}, the desk?") if hit.id in (mine, copy)]
    if mine in [one.id for one in hit.earlier] or copy in [one.id for one in hit.earlier]:
        assert hit.id == mine


def test_an_untrusted_reader_lifts_nothing(world: Workspace, page: Workspace) -> None:
    """T48: reads by an untrusted handle do not count as use."""
    id = page.put("workspace", "The lighthouse of Acme is red").id
    for _ in range(3):
        page.read("lighthouse")
    assert world.standing(id).access is None
    world.read("lighthouse")
    used = world.standing(id).access
    assert used is not None
    assert used.count == 1


def test_rules_of_agents_leave_room_for_the_authors(world: Workspace) -> None:
    """T48: an agent's many standing rules do not push the author's out of the prompt."""
    agent = world.acting(agent="rogue")
    agent.put_many(
        "workspace", [f"Always greet guest number {n} at the gate, politely and by name" for n in range(120)]
    )
    for n, entry in enumerate(agent.entries("workspace", limit=200)):
        agent.update(entry.id, kind="procedural", importance=0.9 + n % 2 / 10)
    mine = world.put("workspace", "Always sign in green ink", kind="procedural", importance=0.9).id
    assert mine in [item.id for item in world.context("greet").document.standing]


BELOW = pytest.mark.parametrize("trust", [trust for trust in Trust if trust is not Trust.AUTHOR], ids=str)


def world_with(memory: Lukasa, name: str, lines: str) -> Workspace:
    """A workspace of `default` with other lines in [retrieval]."""
    text = preset_text("default").replace('name = "default"', f'name = "{name}"', 1)
    return memory.workspace(name, spec=text.replace("rerank =", f"{lines}\nrerank =", 1))


@BELOW
def test_the_spec_decides_the_shares(memory: Lukasa, trust: Trust) -> None:
    """P1: with a share of nothing, text has no place beside the author's; with all, ranking decides."""
    key = trust.name.lower()
    for part, seen in ((0.0, 0), (1.0, 2)):
        shares = dict.fromkeys(("untrusted", "imported", "agent"), 1.0) | {key: part}
        given = ", ".join(f"{name} = {value}" for name, value in shares.items())
        weights = "trust_weights = { untrusted = 1.0, imported = 1.0, agent = 1.0 }"
        world = world_with(memory, f"{key}-{int(part)}", f"shares = {{ {given} }}\n{weights}")
        _, theirs = flooded(world, world.acting(principal="other", trust=trust))
        hits = [hit.id for hit in world.read(ASKED, limit=2)]
        assert sum(id in theirs for id in hits) == seen, part


@BELOW
def test_the_spec_decides_how_much_trust_weighs(memory: Lukasa, trust: Trust) -> None:
    """P1: a small weight puts the better match of a trust below the author's; a weight of one leaves it above."""
    key = trust.name.lower()
    for weight, first in ((0.001, "mine"), (1.0, "theirs")):
        world = world_with(memory, f"{key}-{int(weight)}", f"trust_weights = {{ {key} = {weight} }}")
        ids = {"mine": world.put("workspace", "The harbour has an office and a long grey quay").id}
        ids["theirs"] = world.acting(principal="o", trust=trust).put("workspace", "Harbour office: ring twice").id
        assert world.read("harbour office", limit=3)[0].id == ids[first], weight


def test_trust_weighs_in_the_rank(world: Workspace, page: Workspace) -> None:
    """T48: of two entries that match alike, the more trusted one comes first, and `why` shows the factor."""
    mine = world.put("workspace", "The harbour office opens at nine").id
    theirs = page.put("workspace", "The harbour office opens at dawn").id
    ids = [hit.id for hit in world.read("harbour office")]
    assert ids.index(mine) < ids.index(theirs)
    ranked = next(v for v in world.why("harbour office", theirs) if v.step == "rank")
    assert "trust 0.6" in ranked.reason
