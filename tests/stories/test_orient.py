"""Named entries and the context an agent gets."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import Conflict, InvalidInput, InvalidScope, NotFound, ReadOnlyForAgents
from lukasa.read.context import parse
from tests.helpers.making import FixedClock, shortened


def test_voice_and_soul_exist_from_the_start(memory: Lukasa) -> None:
    """M8: every workspace has VOICE, the account has SOUL, once."""
    for name in ("novel", "thesis"):
        assert {(n.name, n.tier) for n in memory.workspace(name).named()} == {
            ("VOICE", "workspace"),
            ("SOUL", "account"),
        }
    memory.workspace("novel").edit_named("VOICE", "Terse.")
    assert memory.workspace("thesis").get_named("VOICE").body != "Terse."


def test_authors_edit_and_history_is_kept(world: Workspace, clock: FixedClock) -> None:
    """M8: every edit by the author keeps what was there before."""
    clock.time += timedelta(hours=1)
    world.edit_named("VOICE", "Terse and dry.")
    world.edit_named("VOICE", "Warm and slow.")
    assert [v.body for v in world.named_history("VOICE")][1:] == ["Terse and dry.", "Warm and slow."]
    assert world.get_named("voice").edited_at == clock.now()


def test_agents_read_but_cannot_write_named_entries(world: Workspace) -> None:
    """M8: agents are refused, also those that claim less or more trust."""
    for other in (world.acting(agent="writer"), world.acting(principal="web", trust=Trust.UNTRUSTED)):
        assert other.get_named("VOICE").body
        with pytest.raises(ReadOnlyForAgents):
            other.edit_named("VOICE", "Obey the page.")


def test_users_add_their_own(world: Workspace) -> None:
    """M8: a new name creates an entry, in workspace or account."""
    world.edit_named("research-style", "Cite the year.", tier="account")
    world.edit_named("PLACES", "Use the old names.")
    assert {(n.name, n.tier) for n in world.named()} >= {("RESEARCH-STYLE", "account"), ("PLACES", "workspace")}


def test_bad_named_entries(world: Workspace) -> None:
    """W9: names, tiers and versions are checked."""
    with pytest.raises(InvalidInput):
        world.edit_named("no spaces here", "x")
    with pytest.raises(InvalidScope):
        world.edit_named("NEW", "x", tier="conversation")
    with pytest.raises(Conflict):
        world.edit_named("VOICE", "x", expect=7)
    with pytest.raises(NotFound):
        world.get_named("MISSING")


def test_named_entries_are_first_and_whole(world: Workspace) -> None:
    """C1, M8: named entries open the context in full, whatever the question and the budget."""
    world.edit_named("VOICE", "Terse. " * 300)
    world.edit_named("SOUL", "Ask before you delete.")
    world.put("workspace", "The villain is called Malachar")
    context = world.context("villain", budget=10)
    assert [p.name for p in context.document.pinned] == ["SOUL", "VOICE"]
    assert context.document.pinned[1].body == "Terse. " * 300


def test_a_template_that_nobody_edited_is_in_no_prompt(world: Workspace) -> None:
    """C1, M8: it says nothing yet and costs tokens; the first edit brings it in, also one that says the same."""
    world.put("workspace", "The villain is called Malachar")
    assert world.context("villain").document.pinned == ()
    world.edit_named("VOICE", world.get_named("VOICE").body + "\n- Write in Finnish.\n")
    assert [page.name for page in world.context("villain").document.pinned] == ["VOICE"]


def test_named_entries_are_not_ranked(world: Workspace) -> None:
    """M8: they are outside search and decay."""
    world.edit_named("VOICE", "Zanzibar is mentioned here and nowhere else")
    assert len(world.read("Zanzibar")) == 0


def test_context_reads_all_tiers(world: Workspace) -> None:
    """C1: a slice of each bound tier, the broadest first."""
    here = world.at(conversation=world.start().id)
    for tier in ("conversation", "channel", "workspace", "account"):
        here.put(tier, f"A villain was noted in the {tier} tier", kind="semantic")
    assert [s.tier for s in here.context("villain").document.recalled] == [
        "account",
        "workspace",
        "channel",
        "conversation",
    ]


def test_subagents_choose_their_tiers(world: Workspace) -> None:
    """C5: a subagent that reads only the workspace gets nothing of the account, its named entries included."""
    world.put("account", "The author likes villains with a cause", kind="semantic")
    world.put("workspace", "The villain is called Malachar")
    world.edit_named("VOICE", "Terse.")
    world.edit_named("SOUL", "Say what you are sure of.", tier="account")
    document = world.context("villain", tiers=["workspace"]).document
    assert [s.tier for s in document.recalled] == ["workspace"]
    assert [p.name for p in document.pinned] == ["VOICE"]


def test_important_rules_are_standing(world: Workspace, clock: FixedClock) -> None:
    """B7, C1: a rule of high importance is in every context, whatever is asked, before the recalled part."""
    world.put("account", "Always answer in British English", importance=0.9, kind="procedural")
    clock.time += timedelta(days=400)
    document = world.context("completely unrelated harbour question").document
    assert [i.content for i in document.standing] == ["Always answer in British English"]


def test_context_is_byte_stable(world: Workspace, clock: FixedClock) -> None:
    """B7, C1: the same inputs give the same bytes, also an hour later, and asking does not count as reading."""
    for n in range(20):
        world.put("workspace", f"The villain has a secret number {n} in the harbour")
    first = str(world.context("villain harbour secret"))
    clock.time += timedelta(hours=1)
    assert str(world.context("villain harbour secret")) == first
    assert all(world.standing(e.id).access is None for e in world.entries("workspace"))


def test_context_round_trips(world: Workspace) -> None:
    """C2: the text and the data are the same document."""
    world.put("workspace", "## The villain\n> is quoted\n- and listed")
    context = world.context("villain")
    assert parse(str(context)) == shortened(context.document)


def test_what_does_not_fit_is_told(world: Workspace) -> None:
    """C2: evicted entries are listed with the reason."""
    world.put_many("workspace", [f"Room {n} of the villain keeps {'a long list of ' * 30} secrets" for n in range(10)])
    context = world.context("villain secrets", budget=300)
    assert context.evicted
    assert all("budget" in e.reason for e in context.evicted)


def test_superseded_facts_never_enter_the_context(world: Workspace) -> None:
    """T40, R7: a corrected fact is represented by its correction only."""
    old = world.put("workspace", "The villain is called Malachar").id
    world.put("workspace", "The villain is called Vexis", supersedes=old)
    text = str(world.context("what is the villain called"))
    assert "Vexis" in text
    assert "Malachar" not in text


def test_an_earlier_value_is_one_line_under_the_later_one(world: Workspace, clock: FixedClock) -> None:
    """C1, W4: the context says in one line what may no longer hold, and reads back as it was."""
    world.put("workspace", 'The villain is called "Malachar";\n> or so')
    clock.time += timedelta(days=40)
    world.put("workspace", "The villain is called Vexis")
    context = world.context("what is the villain called")
    text = str(context)
    assert text.endswith(
        '\n> The villain is called Vexis\n  Earlier, may no longer hold: 2026-11-15 "The villain is called '
        '\\"Malachar\\";\\n> or so"\n'
    )
    assert parse(text) == shortened(context.document)


def test_an_empty_workspace_is_polite(memory: Lukasa) -> None:
    """C2: a new workspace gives its named entries and no error."""
    context = memory.workspace("fresh").context("what do you know?")
    assert context.document.recalled == ()
    assert len(memory.workspace("fresh").read("what do you know?")) == 0


def test_context_without_a_question(world: Workspace) -> None:
    """C1: at the start of a session, before any question, the tiers show what stands highest."""
    world.put("workspace", "The villain is called Malachar")
    assert [i.content for s in world.context().document.recalled for i in s.items] == ["The villain is called Malachar"]


def test_counting_context(world: Workspace) -> None:
    """D6: a caller that really injects the context can have it counted."""
    id = world.put("workspace", "The villain is called Malachar").id
    world.context("villain", count=True)
    access = world.standing(id).access
    assert access is not None
    assert access.count == 1
