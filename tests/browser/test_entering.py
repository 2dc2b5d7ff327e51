"""Entering by the link, and what somebody without one sees."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.house import House, Visit, visiting


def test_the_link_opens_the_page_and_is_used_up(house: House) -> None:
    """U5: the code is gone from the address, and the same link opens nothing for anybody else."""
    assert "enter" not in house.address_after_entering
    with visiting(house, signed_in=False, calm=False) as stranger:
        stranger.page.goto(house.link)
        expect(stranger.heading("This page needs a link")).to_be_visible()
        stranger.says("was used")
        assert "enter" not in stranger.page.url


def test_without_a_session_the_page_says_how_to_get_one(house: House) -> None:
    """U5: nothing of the memory is shown or asked for, only what to do."""
    with visiting(house, signed_in=False, calm=False) as stranger:
        stranger.page.goto(house.at("browse"))
        expect(stranger.heading("This page needs a link")).to_be_visible()
        stranger.says("lukasa serve")
        stranger.says("lukasa link")
        assert not [url for url in stranger.requests if "/v1/workspaces/" in url]


def test_a_session_survives_a_reload(visit: Visit) -> None:
    """U5: the page gets its token again, so that it can still change things after it was loaded anew."""
    visit.go("add")
    visit.page.reload()
    visit.page.get_by_label("What should be remembered?").fill("Reloading keeps the session alive")
    visit.press("Remember")
    visit.says("Stored.")


def test_workspaces_are_switched(house: House, visit: Visit) -> None:
    """U5, X3: one shows nothing of another, and an empty one says what to do."""
    house.memory.workspace("empty")
    house.main.put("workspace", "Only main knows the lighthouse")
    visit.go("browse")
    visit.says("lighthouse")
    visit.page.get_by_label("Workspace", exact=True).select_option("empty")
    expect(visit.page).to_have_url(house.at("browse", "empty"))
    visit.says("This tier has no entries yet.")
    expect(visit.main()).not_to_contain_text("lighthouse")
    visit.go("overview", "empty")
    visit.says("No entries yet")
    visit.page.get_by_role("link", name="Add the first entry").click()
    expect(visit.heading("Add an entry")).to_be_visible()


def test_an_unknown_workspace_or_view_says_so(visit: Visit) -> None:
    """U5: and leads back to one that is there."""
    visit.go("overview", "nowhere")
    visit.says("There is no workspace “nowhere”.")
    visit.go("unknown")
    visit.says("There is no such view.")
    visit.page.get_by_role("link", name="Go to ").click()
    expect(visit.heading("Overview")).to_be_visible()


def test_a_server_that_is_gone_is_told_with_what_to_do(house: House) -> None:
    """U5: no answer is a problem like any other, with its fix and a way to try again."""
    with visiting(house, calm=False) as visit:
        visit.go("telemetry")
        visit.page.route("**/v1/**", lambda route: route.abort())
        visit.page.get_by_role("link", name="Jobs").click()
        visit.says("The server did not answer.")
        visit.says("lukasa serve")
