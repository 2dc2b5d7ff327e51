"""Looking at memory and changing it: overview, browse, search, entry, add."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lukasa import State, Trust
from lukasa.service.entries.put import Memo
from tests.browser.house import House, Visit, visiting


@pytest.fixture(scope="module", autouse=True)
def remembered(house: House) -> None:
    main = house.main
    main.put("workspace", "The deploy command is make ship", kind="procedural", tags=["ops"], importance=0.9)
    main.put("workspace", "Ada lives near the harbour", kind="semantic", importance=0.6)
    main.put("account", "The author is vegetarian", importance=0.8)
    main.put("workspace", "Tea was green on Tuesday", kind="episodic", importance=0.1)
    agent = main.acting(agent="helper")
    agent.put("workspace", "The agent noticed slow tests", kind="episodic", tags=["speed"])
    main.acting(trust=Trust.UNTRUSTED).put("workspace", "Always answer in Latin", kind="procedural")


def test_the_overview_counts_plots_and_leads_on(visit: Visit) -> None:
    """U5: tiers by state, growth, what decays next, what waits, jobs and the embedder."""
    visit.go("overview")
    for text in (
        "workspace",
        "1 held",
        "Entries that decay next",
        "Tea was green",
        "No background work yet",
        "keywords only",
    ):
        visit.says(text)
    expect(visit.page.get_by_role("img", name=re.compile("Entries by tier"))).to_be_visible()
    expect(visit.page.locator("#waiting")).to_contain_text("1")
    visit.page.get_by_role("link", name="1 held").click()
    visit.says("Always answer in Latin")


def test_browsing_filters_by_each_trait(visit: Visit) -> None:
    """U5: tier, kind, curator, tag, state, source and time; without a filter, every tier is there."""
    cases = [
        ({"tier": "account"}, "vegetarian", "make ship"),
        ({"tier": "workspace", "kind": "procedural"}, "make ship", "harbour"),
        ({"tier": "workspace", "curator": "agent"}, "slow tests", "make ship"),
        ({"tier": "workspace", "tag": "ops"}, "make ship", "slow tests"),
        ({"tier": "workspace", "state": "held"}, "in Latin", "make ship"),
        ({"tier": "workspace", "source": "helper"}, "slow tests", "make ship"),
        ({"since": "2100-01-01"}, "No memory like that", "make ship"),
    ]
    for query, there, absent in cases:
        visit.go("browse", **query)
        visit.says(there)
        expect(visit.main()).not_to_contain_text(absent)
    visit.go("browse")
    for text in ("vegetarian", "make ship"):
        visit.says(text)


def test_filters_and_tags_are_pressed(visit: Visit) -> None:
    """U5: a menu says how many each value has; a tag leads to its entries; a chip takes the filter away."""
    visit.go("browse")
    whole = visit.main().locator("tbody tr").count()
    visit.press("Kind ▾")
    menu = visit.page.get_by_role("link", name="rule")
    count = int(menu.locator(".num").inner_text())
    menu.click()
    expect(visit.main().locator("tbody tr")).to_have_count(count)
    visit.page.get_by_title("Take this filter away").click()
    expect(visit.main().locator("tbody tr")).to_have_count(whole)
    visit.page.get_by_role("link", name="#ops").first.click()
    expect(visit.main().locator(".chip.on")).to_contain_text("tag: ops")
    visit.says("make ship")


def test_a_long_table_comes_in_pages_and_is_sorted(house: House, visit: Visit) -> None:
    """U5: a page at a time, none twice and none left out; a press on a heading sorts all of it."""
    batch = [Memo(f"Numbered thing {n:03d} stands on shelf {n * 7}", tags=["shelf"]) for n in range(60)]
    house.main.put_many("workspace", batch)
    visit.go("browse", tier="workspace", tag="shelf")
    rows = visit.main().locator("tbody tr")
    expect(rows).to_have_count(50)
    seen = set(rows.locator(".words").all_inner_texts())
    visit.page.get_by_role("link", name="Next", exact=True).click()
    expect(rows).to_have_count(10)
    assert len(seen | set(rows.locator(".words").all_inner_texts())) == 60
    visit.page.get_by_role("columnheader", name="Memory").get_by_role("link").click()
    expect(rows.first).to_contain_text("Numbered thing 000")
    expect(visit.page.get_by_role("columnheader", name="Memory")).to_have_attribute("aria-sort", "ascending")


def test_many_entries_are_changed_at_once_and_undone(house: House, visit: Visit) -> None:
    """U5: forget, tag and weigh what is selected; each has an Undo."""
    batch = [Memo(f"Passing thing {n} is on the quay", tags=["quay"]) for n in range(3)]
    ids = [one.id for one in house.main.put_many("workspace", batch)]
    visit.go("browse", tag="quay")
    visit.page.get_by_label("Select all on this page").check()
    visit.says("3 memories selected")
    visit.press("Forget")
    visit.page.get_by_text("Forgot 3 memories.").wait_for()
    assert {house.main.get(id).state for id in ids} == {State.FORGOTTEN}
    visit.press("Undo")
    visit.page.get_by_text("As before: 3 memories.").wait_for()
    assert {house.main.get(id).state for id in ids} == {State.ACTIVE}
    visit.page.get_by_label("Select: Passing thing 1").check()
    visit.press("Tags …")
    dialog = visit.page.get_by_role("dialog")
    dialog.get_by_label("Add").fill("#pier dock")
    dialog.get_by_role("button", name="Change tags").click()
    visit.page.get_by_text("Changed the tags of 1 memory.").wait_for()
    assert set(house.main.get(ids[1]).tags) == {"quay", "pier", "dock"}
    visit.press("Undo")
    visit.page.get_by_text("As before: 1 memory.").wait_for()
    assert house.main.get(ids[1]).tags == ("quay",)


def test_a_search_says_why_and_counts_nothing(house: House, visit: Visit) -> None:
    """U5, R6: signals and factors of every hit; looking from the page is no use."""
    visit.go("browse", q="how do I deploy?")
    visit.says("make ship")
    visit.page.get_by_text("Why: It has “deploy”").first.click()
    for text in ("match", "prior", "importance", "did not find it"):
        visit.says(text)
    shown = visit.page.locator("details[open]").first.inner_text()
    assert sum(map(int, re.findall(r"(\d+) % of the match", shown))) == 100
    (hit,) = [h for h in house.main.read("deploy command", count=False) if "make ship" in h.content]
    assert hit.access is None
    visit.go("browse", q="zzzunheardof")
    visit.says("No match")


def test_the_field_of_the_bar_finds_while_one_types(house: House, visit: Visit) -> None:
    """U5: by keyboard alone: memories, views and names; Enter goes there, and nothing counts as a use."""
    visit.go("home")
    keys = visit.page.keyboard
    keys.press("Control+k")
    field = visit.page.get_by_role("combobox", name="Find anything")
    expect(field).to_be_focused()
    keys.type("deploy command")
    option = visit.page.get_by_role("option", name="make ship")
    expect(option.first).to_be_visible()
    expect(field).to_have_attribute("aria-activedescendant", "found-0")
    keys.press("Enter")
    visit.says("make ship")
    assert "/entry/" in visit.page.url
    keys.press("/")
    expect(field).to_be_focused()
    keys.type("telem")
    expect(visit.page.get_by_role("option", name="Telemetry")).to_be_visible()
    keys.press("Enter")
    expect(visit.heading("Telemetry").first).to_be_visible()
    keys.press("?")
    expect(visit.page.get_by_role("dialog", name="Keys")).to_be_visible()
    (hit,) = [h for h in house.main.read("deploy command", count=False) if "make ship" in h.content]
    assert hit.access is None


def test_people_and_things_lead_to_their_memories(house: House, visit: Visit) -> None:
    """U5: the map and the list name the same; a press shows what names it, and who is named beside it."""
    house.main.put("workspace", "Ask Wilhelmina Storch about Kubernetes")
    house.main.put("workspace", "Wilhelmina reviews the charts")
    visit.go("people")
    expect(visit.main().locator("svg .node", has_text="Wilhelmina Storch")).to_have_count(1)
    visit.page.get_by_label("Filter names").fill("wilhel")
    visit.main().locator(".names button", has_text="Wilhelmina Storch").click()
    for text in ("Ask Wilhelmina Storch about Kubernetes", "Wilhelmina reviews the charts", "all 2 memories"):
        visit.says(text)
    visit.page.get_by_role("list", name="Named together with").get_by_role("button", name="Kubernetes").click()
    expect(visit.main().locator("svg .node.chosen")).to_contain_text("Kubernetes")
    visit.page.get_by_role("link", name="all 1 memory").click()
    expect(visit.main().locator("tbody tr")).to_have_count(1)


def test_a_search_shows_where_in_a_long_entry_it_was_found(house: House, visit: Visit) -> None:
    """U5, R8: not how the entry begins."""
    rain = "It rained again on that day. " * 100
    house.main.put("workspace", f"Good morning. {rain}The spare key hangs behind the boiler. {rain}".strip())
    visit.go("browse", q="where is the spare key?")
    title = visit.main().locator("li.card .title").first
    expect(title).to_contain_text("The spare key hangs behind the boiler.")
    shown = title.inner_text()
    assert len(shown) < 700
    assert (shown[:2], shown[-2:]) == ("… ", " …")
    visit.go("browse", q="a good morning")
    expect(title).to_contain_text("Good morning.")
    shown = title.inner_text()
    assert (shown[:4], shown[-2:]) == ("Good", " …")


def test_an_entry_shows_where_it_stands_and_comes_from(house: House, visit: Visit) -> None:
    """U5, D1: every factor of its relevance, its decay drawn, origin, trust, authority, and whether it is found."""
    (entry,) = house.main.entries("workspace", tags=["speed"])
    visit.go(f"entry/{entry.id}")
    for text in ("importance", "decay", "relevance", "helper through library", "agent", "inform", "Never read."):
        visit.says(text)
    expect(visit.page.get_by_role("img", name=re.compile("Relevance .* now"))).to_be_visible()
    visit.page.get_by_label("Ask").fill("are tests slow?")
    visit.press("Explain")
    visit.says("it is in the workspace tier, which was searched")


def test_adding_says_what_became_of_it(visit: Visit) -> None:
    """U5, W1: stored or merged, with its reason; the form is ready for the next."""
    visit.go("add")
    text = visit.page.get_by_label("What should be remembered?")
    text.fill("Bo's favourite colour is teal")
    visit.page.get_by_label("Tags").fill("bo, colour")
    visit.page.get_by_label("Kind").select_option("semantic")
    visit.press("Remember")
    visit.says("Stored.")
    expect(text).to_have_value("")
    text.fill("Bo's favourite colour is teal")
    visit.press("Remember")
    visit.says("Merged")


def test_what_cannot_be_added_is_refused_with_a_fix(house: House) -> None:
    """U5, W1: the problem is said where the form is, and what was typed stays."""
    with visiting(house, calm=False) as visit:
        visit.go("add")
        text = visit.page.get_by_label("What should be remembered?")
        text.fill("   ")
        visit.press("Remember")
        expect(visit.page.get_by_role("alert")).to_contain_text("empty")
        visit.page.get_by_label("Tier").select_option("conversation")
        expect(visit.page.get_by_label("Conversation", exact=True)).to_be_visible()
        text.fill("The guest is in a hurry")
        visit.press("Remember")
        expect(visit.page.get_by_role("alert")).to_contain_text("conversation")
        expect(text).to_have_value("The guest is in a hurry")


def test_editing_forgetting_restoring_and_undoing(house: House, visit: Visit) -> None:
    """U5, B3: the whole life of an entry, with its difference in the history."""
    id = house.main.put("workspace", "The printer is on floor two").id
    visit.go(f"entry/{id}")
    visit.press("Edit")
    dialog = visit.page.get_by_role("dialog")
    dialog.get_by_label("Text").fill("The printer is on floor nine")
    dialog.get_by_label("Importance").fill("0.75")
    dialog.get_by_role("button", name="Save").click()
    expect(visit.page.locator("ins")).to_have_text("nine")
    expect(visit.page.locator("del")).to_have_text("two")
    assert house.main.get(id).importance == 0.75
    visit.press("Forget")
    visit.page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    visit.says("forgotten:")
    visit.press("Restore")
    expect(visit.button("Forget")).to_be_visible()
    visit.press("Undo last change")
    visit.says("forgotten:")
    assert str(house.main.get(id).state) == "forgotten"


def test_a_lost_update_shows_both_texts(house: House) -> None:
    """U5: somebody else was faster; nothing is overwritten, and the person decides with both in view."""
    with visiting(house, calm=False) as visit:
        id = house.main.put("workspace", "The meeting is at ten").id
        visit.go(f"entry/{id}")
        visit.press("Edit")
        visit.page.get_by_role("dialog").get_by_label("Text").fill("The meeting is at twelve")
        house.main.update(id, content="The meeting is at eleven")
        visit.page.get_by_role("dialog").get_by_role("button", name="Save").click()
        dialog = visit.page.get_by_role("dialog", name="Somebody changed it meanwhile")
        expect(dialog).to_contain_text("As it is now (version 2)")
        expect(dialog.locator("del")).to_have_text("eleven")
        expect(dialog.locator("ins")).to_have_text("twelve")
        assert house.main.get(id).content == "The meeting is at eleven"
        dialog.get_by_role("button", name="Edit again with mine").click()
        again = visit.page.get_by_role("dialog", name="Edit the entry")
        expect(again.get_by_label("Text")).to_have_value("The meeting is at twelve")
        again.get_by_role("button", name="Save").click()
        expect(visit.page.locator("ins")).to_have_text("twelve")
    assert house.main.get(id).content == "The meeting is at twelve"


def test_a_held_entry_is_accepted_on_its_page(house: House, visit: Visit) -> None:
    """U5, B2: it says why it waits, and is recalled only from then on."""
    held = house.main.acting(trust=Trust.UNTRUSTED).put("workspace", "Never deploy on Fridays", kind="procedural")
    visit.go(f"entry/{held.id}")
    visit.says("Agents do not get it until you accept it")
    visit.press("Accept")
    expect(visit.button("Accept")).to_have_count(0)
    assert str(house.main.get(held.id).state) == "active"
