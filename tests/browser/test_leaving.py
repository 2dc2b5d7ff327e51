"""Leaving: alone in its module, because the session that it ends is the one all tests of a module share."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.house import House, visiting


def test_signing_out_ends_the_session(house: House) -> None:
    """U5: the cookie opens nothing afterwards, also in another tab."""
    with visiting(house, signed_in=False, calm=False) as visit:
        visit.page.context.add_cookies(house.state["cookies"])
        visit.go("home")
        other = visit.page.context.new_page()
        other.goto(house.at("home"))
        expect(other.get_by_role("heading", name="What Lukasa knows")).to_be_visible()
        visit.press("Sign out")
        expect(visit.heading("This page needs a link")).to_be_visible()
        other.reload()
        expect(other.get_by_role("heading", name="This page needs a link")).to_be_visible()
