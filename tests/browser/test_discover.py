"""Discovering on the page: a form, its result, and the feeds that are followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.house import House, Visit, open_house
from tests.helpers.web import Site, site

PAGE = """<title>Stale caches</title><link rel="alternate" type="application/rss+xml" href="/feed.xml">
<h1>Stale caches</h1><p>&lt;img src=x onerror=alert(1)&gt; A cache is stale after a write.</p>"""
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>Notes</title>
<item><guid>1</guid><title>One</title><link>/one.html</link></item></channel></rss>"""


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    with site() as one, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LUKASA_FETCH_ALLOW", one.allowed)
        one.put("/page.html", PAGE)
        one.put("/feed.xml", FEED, "application/rss+xml")
        yield one


@pytest.fixture(scope="module")
def house(browser: Browser, tmp_path_factory: pytest.TempPathFactory, web: Site) -> Iterator[House]:
    """A server that may fetch from the site of this module."""
    with open_house(browser, tmp_path_factory.mktemp("house")) as opened:
        yield opened


def test_a_page_is_discovered_and_its_feed_followed(house: House, visit: Visit, web: Site, shots: Path) -> None:
    """K6, U5: the note, the relevance and the feed are told; the texts of the page stay text."""
    house.main.put("workspace", "Our cache was stale on Monday")
    visit.go("library")
    visit.says("Nothing was discovered yet.")
    visit.page.get_by_label("Page or repository").fill(web.url("/page.html"))
    visit.page.get_by_label("A word of context").fill("stale cache")
    visit.page.get_by_label("Follow its feed").check()
    visit.press("Discover")
    visit.says("Stale caches: added, version 1")
    visit.says("<img src=x onerror=alert(1)> A cache is stale after a write.")
    visit.says("it has 100 % of the words of the context")
    visit.says(f"Its feed is followed: {web.url('/feed.xml')}")
    expect(visit.page.locator("li.card", has_text="Stale caches").first).to_contain_text("unverified")
    expect(visit.page.locator("li.card", has_text=web.url("/feed.xml"))).to_have_count(1)
    visit.page.screenshot(path=shots / "library-discovered.png", full_page=True)
    visit.go("library", q="after a write")
    expect(visit.page.locator("li.card", has_text="after a write").first).to_contain_text("origin web")
    card = visit.page.locator("li.card", has_text=web.url("/feed.xml")).last
    expect(card).to_contain_text("feed")
    card.get_by_role("button", name="Stop").click()
    visit.says("Nothing is followed.")
    assert house.main.feeds() == []


def test_what_may_not_be_asked_is_said(house: House, visit: Visit, web: Site) -> None:
    """T51, U5: an address inside is refused in words, and a feed is followed by its own address."""
    with site() as inside:
        visit.go("library")
        visit.page.get_by_label("Page or repository").fill(inside.url())
        visit.press("Discover")
        visit.says("is no public address")
        assert inside.hits == []
    visit.complaints.clear()  # the browser itself notes a 403
    visit.page.get_by_label("A feed", exact=True).fill(web.url("/feed.xml"))
    visit.press("Follow feed")
    expect(visit.page.locator("li.card", has_text=web.url("/feed.xml")).last).to_contain_text("looked at")
    assert [one.location for one in house.main.feeds()] == [web.url("/feed.xml")]
