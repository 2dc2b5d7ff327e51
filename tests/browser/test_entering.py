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
    visit.press("Workspace main")
    visit.page.get_by_role("link", name="empty").click()
    expect(visit.page).to_have_url(house.at("home", "empty"))
    visit.go("browse", "empty")
    visit.says("Nothing yet")
    expect(visit.main()).not_to_contain_text("lighthouse")
    visit.page.get_by_role("link", name="Remember").click()
    expect(visit.heading("Add an entry")).to_be_visible()


def test_a_new_workspace_needs_no_reload(house: House, visit: Visit) -> None:
    """U5: made here, or by an agent meanwhile: it is in the list, and its address opens."""
    visit.go("home")
    house.memory.workspace("made by an agent")
    visit.press("Workspace main")
    expect(visit.page.get_by_role("link", name="made by an agent")).to_be_visible()
    visit.press("New workspace …")
    visit.page.get_by_role("dialog").get_by_label("Name").fill("payments")
    visit.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(visit.heading("What Lukasa knows about payments")).to_be_visible()
    assert house.memory.existing("payments").census() == []
    house.memory.workspace("later still")
    visit.go("home", "later still")
    expect(visit.heading("What Lukasa knows about later still")).to_be_visible()


def test_a_workspace_that_is_there_already_is_not_made_again(house: House) -> None:
    """U5: the dialog stays, and says so."""
    with visiting(house, calm=False) as visit:
        visit.go("home")
        visit.press("Workspace main")
        visit.press("New workspace …")
        dialog = visit.page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("main")
        dialog.get_by_role("button", name="Create").click()
        expect(dialog.get_by_role("alert")).to_contain_text("'main' exists already")


def test_the_page_opens_on_the_workspace_in_use(house: House) -> None:
    """U5: the one that was written last, for a browser that is new here; then the one that it showed last."""
    house.memory.workspace("aardvark").put("workspace", "Aardvarks dig at night")
    house.memory.workspace("zebra").put("workspace", "Zebras stand in the shade")
    with visiting(house) as visit:
        visit.go("home")
        visit.page.evaluate("localStorage.clear()")  # as a browser that was never here
        visit.page.goto("about:blank")
        visit.page.goto(house.url)
        expect(visit.heading("What Lukasa knows about zebra")).to_be_visible()
        visit.go("home", "aardvark")
        visit.page.goto("about:blank")
        visit.page.goto(house.url)
        expect(visit.heading("What Lukasa knows about aardvark")).to_be_visible()


def test_an_unknown_workspace_or_view_says_so(visit: Visit) -> None:
    """U5: and leads back to one that is there."""
    visit.go("home", "nowhere")
    visit.says("There is no workspace “nowhere”.")
    visit.go("unknown")
    visit.says("There is no such view.")
    visit.page.get_by_role("link", name="Go to ").click()
    expect(visit.heading("What Lukasa knows")).to_be_visible()


def test_a_server_that_is_gone_is_told_with_what_to_do(house: House) -> None:
    """U5: no answer is a problem like any other, with its fix and a way to try again."""
    with visiting(house, calm=False) as visit:
        visit.go("telemetry")
        visit.page.route("**/v1/**", lambda route: route.abort())
        visit.page.get_by_role("link", name="Activity").click()
        visit.says("The server did not answer.")
        visit.says("lukasa serve")
