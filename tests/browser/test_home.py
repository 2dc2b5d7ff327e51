"""Home, the board and the timeline, with the memory of an invented team; and the decision between two statements."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lukasa import Workspace
from lukasa.model.transcript import Quote, Transcript, Utterance
from lukasa.service.entries.put import Memo
from lukasa.storage.operations import KeepUtterances, SaveTranscript
from tests.browser.house import DESK, PHONE, House, Visit, visiting
from tests.helpers.accessibility import faults
from tools import demo

SAID = "right, money columns are NUMERIC(18,4), see ADR-0012"
LEARNED = "Money columns are NUMERIC(18,4)"


@pytest.fixture(scope="module")
def team(house: House) -> Workspace:
    """A small memory: one session with a lesson, two statements that differ, things of several topics."""
    team = house.memory.workspace("team")
    now = team.ctx.now
    talk = Transcript(
        "0199f0aa-0000-7000-8000-00000000000a", "k", "claude-code", "Write the schema", now, now, now, kept=1
    )
    said = (Utterance("m0", "user", SAID, 0, now),)
    team.ctx.apply(team.ctx.local, SaveTranscript(talk, 0), KeepUtterances(talk.id, said))
    agent = team.acting(agent="claude-code")
    agent.put_many("workspace", [Memo(LEARNED, source="claude-code", evidence=(Quote(talk.id, "m0", 0, len(SAID)),))])
    for session in demo.SESSIONS[:8]:
        for _, text in session[3]:
            if LEARNED not in text:
                team.put(
                    "workspace", text.lstrip("!@"), kind="procedural" if text[0] == "!" else "semantic", importance=0.85
                )
    agent.context("which type have money columns?")
    return team


def test_home_says_what_it_knows_in_one_sentence(team: Workspace, visit: Visit) -> None:
    """U5: memories, people, things, sessions and use are counted, and each number leads to what it counts."""
    visit.go("home", "team")
    count = team.home().memories
    visit.says(f"{count} memories of ")
    visit.says("from 1 session with Claude Code")
    visit.says("Used 1 time this week, for ")
    visit.page.get_by_role("link", name=f"{count} memories").click()
    expect(visit.page).to_have_url(visit.house.at("browse", "team"))
    visit.go("home", "team")
    visit.page.get_by_role("link", name="1 session", exact=True).click()
    expect(visit.page).to_have_url(visit.house.at("conversations", "team"))


def test_the_last_session_taught_it_with_the_words_that_were_said(team: Workspace, visit: Visit) -> None:
    """U5, B9: what was learned, who said it, word for word; and rules that agents always follow."""
    visit.go("home", "team")
    taught = visit.page.locator("section", has=visit.heading("Your last session taught it"))
    expect(taught.get_by_role("link", name=LEARNED)).to_be_visible()
    expect(taught.locator("q")).to_have_text(SAID)
    rules = visit.page.locator("section", has=visit.heading("Rules and preferences"))
    expect(rules).to_contain_text("Use uv, never pip install directly")


def test_the_board_has_a_bead_for_every_memory(team: Workspace, visit: Visit) -> None:
    """U5: pointing reads one, a click opens it, a topic comes closer and goes back, by mouse and by keyboard."""
    visit.go("home", "team")
    beads = visit.page.locator(".board circle")
    expect(beads).to_have_count(team.home().memories)
    readout = visit.page.locator(".readout")
    expect(readout).to_contain_text("Today: ")
    bead = beads.first
    bead.hover()
    expect(readout).to_contain_text("holds in team")
    words = readout.locator(".words").inner_text()
    spot = visit.page.locator(".board .spot").first
    spot.focus()
    visit.page.keyboard.press("Enter")
    expect(visit.button("All topics")).to_be_focused()
    visit.page.keyboard.press("Enter")
    expect(visit.button("All topics")).to_be_hidden()
    visit.page.get_by_text("The board as a list").click()
    inside = visit.page.locator(".as-list details").first
    inside.locator("summary").click()
    expect(inside.get_by_role("link").first).to_be_visible()
    bead.click()
    expect(visit.heading("Entry").first).to_be_visible()
    visit.says(words.rstrip("…")[:40])


def test_the_slider_shows_the_board_of_another_day(house: House, visit: Visit) -> None:
    """U5: what was not yet known is off the board, and what is known no longer is on it."""
    past = house.memory.workspace("past")
    heron = Memo("The heron is grey", valid_at="2026-01-10T12:00:00+00:00")
    swan = Memo("The swan is white", valid_at="2026-02-10T12:00:00+00:00")
    past.forget(past.put_many("workspace", [heron, swan])[0].id)
    visit.go("home", "past")
    seen = visit.page.locator(".board circle:not(.off)")
    expect(seen).to_have_count(1)
    slider = visit.page.get_by_label("As of")
    slider.fill("40")
    expect(seen).to_have_count(2)
    slider.fill("0")
    expect(seen).to_have_count(1)
    expect(visit.page.locator(".readout")).to_contain_text("1 memory")


def test_the_timeline_goes_back_to_a_day(house: House, visit: Visit) -> None:
    """U5, M5: what was believed then, what stands in its place today, and what changed, with its words before."""
    world = house.memory.workspace("days")
    old = world.put("workspace", "The ferry leaves at nine").id
    world.update(old, content="The ferry leaves at half past nine")
    world.forget(world.put("workspace", "The bridge is closed").id, "it opened again")
    visit.go("timeline", "days")
    believed = visit.page.locator("section", has=visit.heading("Believed today"))
    expect(believed).to_contain_text("The ferry leaves at half past nine")
    expect(believed).not_to_contain_text("The bridge is closed")
    changes = visit.page.locator("section", has=visit.heading("What changed lately"))
    expect(changes.locator("ins")).to_contain_text("half past")
    expect(changes).to_contain_text("it opened again")
    visit.go("timeline", "days", at="2020-05-01")
    visit.says("Nothing was believed yet.")


@pytest.mark.parametrize(("choice", "left"), [("Keep the old", 1), ("Use the new", 1), ("Both are true", 2)])
def test_two_statements_are_decided_on_the_spot_and_taken_back(house: House, choice: str, left: int) -> None:
    """U5, B3: each decision holds at once, and Undo brings the question back."""
    world = house.memory.workspace(f"pair {left} {choice[0]}")
    world.put("workspace", "The mayor of Utopia is Ines")
    world.put("workspace", "The mayor of Utopia is Omar")
    with visiting(house) as visit:
        visit.go("home", world.name)
        visit.says("Two statements differ. Which one holds?")
        visit.press(choice)
        visit.says("Nothing waits for you here.")
        assert world.home().memories == left
        assert world.inbox().rivals == ()
        visit.press("Undo")
        visit.says("Two statements differ.")
        assert world.home().memories == 2
        assert len(world.inbox().rivals) == 1


def test_an_empty_home_says_how_to_connect_an_agent(house: House, visit: Visit) -> None:
    """U2, U5: the first thing a new user sees: an empty board, one sentence, a command for each agent."""
    house.memory.workspace("new here")
    visit.go("home", "new here")
    visit.says("Connect an agent, work as usual, and this board fills by itself.")
    for command in ("lukasa install claude-code", "lukasa install codex", "lukasa install cursor"):
        expect(visit.page.get_by_role("button", name=f"Copy: {command}")).to_be_visible()
    expect(visit.page.locator(".board circle")).to_have_count(0)


def test_many_memories_are_clusters_with_counts(house: House, visit: Visit) -> None:
    """U5: 1,200 beads are drawn; a topic tells how many it has; the phone has them from top to bottom."""
    demo.fill(house.memory, 1200, "large")
    visit.go("home", "large")
    beads = visit.page.locator(".board circle")
    expect(beads).to_have_count(house.memory.workspace("large").home().memories)
    expect(visit.page.locator(".board .spot tspan").first).to_have_text(
        " " + str(house.memory.workspace("large").board().spots[0].count)
    )
    with visiting(house, size=PHONE) as phone:
        phone.go("home", "large")
        box = phone.page.locator(".board svg").bounding_box()
        assert box is not None
        assert box["height"] > box["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_view_has_a_fault_for_a_screen_reader(
    house: House, team: Workspace, scheme: str, size: dict[str, int]
) -> None:
    """U5: axe-core finds no violation on home, timeline and inbox, full and empty, in both schemes and widths."""
    house.memory.workspace("bare")
    with visiting(house, color_scheme=scheme, size=size) as visit:
        for view in ("home", "timeline", "inbox"):
            for workspace in ("team", "bare"):
                visit.go(view, workspace)
                assert (view, workspace, faults(visit.page)) == (view, workspace, [])
