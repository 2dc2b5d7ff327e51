"""Feeds that are followed: the worker asks them, takes what is new, and rests when they are ill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.corpus import Watch
from lukasa.model.errors import InvalidInput, NotFound, Refused, UnreadableDocument
from lukasa.providers.web.feeds import read_feed
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.web import Page, Site, site


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with site() as one:
        monkeypatch.setenv("LUKASA_FETCH_ALLOW", one.allowed)
        yield one


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock) as opened:
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    return memory.workspace("novel")


LINK = '<link rel="alternate" type="application/rss+xml" href="feed.xml">'


def rss(*ids: str) -> str:
    """A feed with these items, the newest first."""
    items = "".join(
        f"<item><guid>{id}</guid><title>Item {id}</title><link>/{id}.html</link>"
        f"<description>{escape(f'<p>All about <b>{id}</b>.</p>')}</description></item>"
        for id in ids
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>The harbour</title>{items}</channel></rss>'


def publish(web: Site, *ids: str) -> str:
    """Serve a feed with these items, each with a page of its own."""
    for id in ids:
        web.put(f"/{id}.html", f"<title>{id} in full</title><p>The whole story of {id}, with the tide table.</p>")
    return web.put("/feed.xml", rss(*ids), "application/rss+xml", etag=True)


def work(memory: Lukasa, clock: FixedClock, **later: float) -> None:
    """Let some time pass, then let a worker do what is due."""
    clock.time += timedelta(**later)
    memory.worker().drain()


def titles(world: Workspace) -> list[str]:
    return [one.title for one in world.discoveries()]


def watched(world: Workspace) -> Watch:
    (one,) = world.feeds()
    return one


@pytest.mark.usefixtures("engine")
def test_new_items_become_discoveries(memory: Lukasa, world: Workspace, web: Site, clock: FixedClock) -> None:
    """K6: what the feed holds at first counts as seen; what comes later is taken once, each with its own page."""
    url = publish(web, "one", "two")
    page = web.put("/", f"<title>News</title>{LINK}<p>News.</p>")
    found = world.discover(page, follow=True)
    assert (found.followed, watched(world).location) == (watched(world).id, url)
    work(memory, clock, minutes=30)
    assert titles(world) == ["News"]
    assert web.hits.count("/feed.xml") == 1
    publish(web, "three", "one", "two")
    work(memory, clock, hours=1)
    assert titles(world) == ["three in full", "News"]
    (made, _) = world.discoveries()
    assert (made.kind, made.origin, made.standing) == ("item", "web", "unverified")
    assert world.search_corpus("tide table of three")[0].document == made.document
    work(memory, clock, hours=2)
    work(memory, clock, hours=2)
    assert titles(world) == ["three in full", "News"]
    assert "if-none-match" in web.asked[-1]
    assert web.hits.count("/three.html") == 1
    publish(web, "two", "three")  # in another order, and one is gone
    work(memory, clock, hours=2)
    assert titles(world) == ["three in full", "News"]


def test_many_new_items_come_in_portions(memory: Lukasa, world: Workspace, web: Site, clock: FixedClock) -> None:
    """K6: a poll takes five items, the oldest first; the next comes sooner, and none is lost or taken twice."""
    world.follow_feed(publish(web, "old"))
    ids = [f"n{number}" for number in range(12, 0, -1)]
    publish(web, *ids, "old")
    work(memory, clock, hours=2)
    assert sorted(titles(world)) == sorted(f"n{number} in full" for number in range(1, 6))
    assert watched(world).due_at - clock.now() < timedelta(minutes=15)
    work(memory, clock, minutes=15)
    assert len(titles(world)) == 10
    work(memory, clock, minutes=15)
    work(memory, clock, hours=2)
    assert sorted(titles(world)) == sorted(f"{id} in full" for id in ids)


def test_a_feed_that_fails_is_asked_less_and_less_often(
    memory: Lukasa, world: Workspace, web: Site, clock: FixedClock
) -> None:
    """K6: pauses double up to a day, a server may ask for more, the list says what is wrong, and success heals it."""
    world.follow_feed(publish(web, "one"))
    web.pages["/feed.xml"] = Page(status=500)
    pauses = []
    for failures in range(1, 8):
        work(memory, clock, days=2)
        assert (watched(world).failures, watched(world).error) == (failures, f"{web.host} answered 500")
        pauses.append(watched(world).due_at - clock.now())
    assert pauses[0] >= timedelta(hours=2)
    assert all(a < b * 1.3 for a, b in pairwise(pauses))
    assert timedelta(days=1) <= pauses[-1] <= timedelta(days=1.2)
    before = web.hits.count("/feed.xml")
    work(memory, clock, hours=12)
    assert web.hits.count("/feed.xml") == before
    publish(web, "two", "one")
    work(memory, clock, days=2)
    assert (watched(world).failures, watched(world).error) == (0, "")
    assert titles(world) == ["two in full"]
    web.pages["/feed.xml"] = Page(status=429, headers={"Retry-After": "40000"})
    work(memory, clock, hours=2)
    assert watched(world).due_at - clock.now() >= timedelta(seconds=40000)
    web.put("/feed.xml", "<html>Sorry</html>")
    work(memory, clock, days=2)
    assert "no feed" in watched(world).error


def test_an_item_without_its_page_is_kept_as_the_feed_has_it(
    memory: Lukasa, world: Workspace, web: Site, clock: FixedClock
) -> None:
    """K6: a page that is gone, that robots.txt refuses, or that lies inside leaves the feed's own words."""
    with site() as inside:
        inside.put("/inside.html", "<p>The inside.</p>")
        world.follow_feed(publish(web, "old"))
        publish(web, "gone", "hidden", "old")
        feed = rss("gone", "hidden", "inside", "old").replace("/inside.html", inside.url("/inside.html"))
        web.put("/feed.xml", feed, "application/rss+xml")
        web.pages.pop("/gone.html")
        web.put("/robots.txt", "User-agent: *\nDisallow: /hidden\n", "text/plain")
        work(memory, clock, hours=2)
        made = world.discoveries()
        assert sorted(one.title for one in made) == ["Item gone", "Item hidden", "Item inside"]
        assert all("this is the feed's own text" in world.get_document(one.document).body for one in made)
        assert {one.note for one in made} == {"All about gone .", "All about hidden .", "All about inside ."}
        assert "/hidden.html" not in web.hits
        assert inside.hits == []


def test_a_feed_ends_when_the_owner_says_so(memory: Lukasa, world: Workspace, web: Site, clock: FixedClock) -> None:
    """K6: followed twice is followed once; removed, it is asked no more, and what it brought stays."""
    url = publish(web, "one")
    first = world.follow_feed(url)
    assert world.follow_feed(url).id == first.id
    publish(web, "two", "one")
    work(memory, clock, hours=2)
    world.unfollow_feed(url)
    assert world.feeds() == []
    asked = web.hits.count("/feed.xml")
    work(memory, clock, hours=5)
    assert web.hits.count("/feed.xml") == asked
    assert titles(world) == ["two in full"]
    with pytest.raises(NotFound):
        world.unfollow_feed(url)
    with pytest.raises(Refused):
        world.acting(agent="claude").follow_feed(url)


def test_the_command_line_follows_and_polls(tmp_path: Path, web: Site) -> None:
    """K6, U2: add, list, poll and remove, for people and for programs."""
    shell = Shell(tmp_path / "shell", {"LUKASA_EMBEDDER": "none", "LUKASA_FETCH_ALLOW": web.allowed})
    url = publish(web, "one")
    assert shell.json("feed", "add", url)["location"] == url
    assert url in shell.run("feed", "list")
    assert shell.json("feed", "poll")["counts"] == {"unchanged": 1}
    publish(web, "two", "one")
    assert shell.json("feed", "poll", url)["counts"] == {"polled": 1, "added": 1}
    assert "two in full" in shell.run("discover", "list")
    assert shell.fails("feed", "poll", "https://elsewhere.example/feed", code=1)["code"] == "not-found"
    assert shell.fails("feed", "add", web.put("/plain", "<p>No feed here.</p>"), code=2)["code"] == "invalid-input"
    shell.run("feed", "remove", url)
    assert shell.json("feed", "list")["feeds"] == []


ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title>
<entry><id>tag:a</id><title type="html">A &amp;lt;b&amp;gt;</title><link rel="self" href="/self"/><link href="/a"/>
<summary>First</summary><updated>2026-01-02T03:04:05Z</updated></entry>
<entry><title>No id</title><content>Text</content></entry></feed>"""
RDF = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel><title>Old</title></channel><item><title>I</title><link>http://host.example/i</link></item></rdf:RDF>"""
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "J",
        "items": [
            {"id": 7, "url": "/j", "content_html": "<p>Hello <i>you</i></p>"},
            5,
            {"id": "8", "url": "javascript:x"},
        ],
    }
)


@pytest.mark.parametrize(
    ("text", "title", "first"),
    [
        (ATOM, "Atom", ("tag:a", "https://host.example/a", "First")),
        (RDF, "Old", ("http://host.example/i", "http://host.example/i", "")),
        (JSON, "J", ("7", "https://host.example/j", "Hello you")),
    ],
    ids=["atom", "rdf", "json"],
)
def test_every_format_is_read(text: str, title: str, first: tuple[str, str, str]) -> None:
    """K6: RSS 1 and 2, Atom and JSON Feed; links are http, markup is gone, and an item without id has one."""
    feed = read_feed(text.encode(), "https://host.example/feed")
    one = feed.items[0]
    assert (feed.title, (one.id, one.url, one.summary)) == (title, first)
    assert all(item.id and item.url.startswith(("", "https://")) for item in feed.items)
    assert not any(item.url.startswith("javascript") for item in feed.items)


TITLED = "]><rss><channel><title>&b;</title></channel></rss>"
BOMB = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">{TITLED}'
OUTSIDE = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY b SYSTEM "file:///etc/hostname">{TITLED}'


@pytest.mark.parametrize(
    "text",
    [BOMB, OUTSIDE, "<rss>", "<html></html>", "[1]", "{", '{"items": 7}', "", "<rss>" + "<a>" * 9999, "[" * 99999],
    ids=["entities", "outside", "cut off", "html", "list", "half", "no items", "nothing", "deep", "deep json"],
)
def test_what_is_no_feed_is_refused(text: str) -> None:
    """T52: entities are refused, and broken or deep feeds cost a typed error."""
    with pytest.raises(UnreadableDocument) as refused:
        read_feed(text.encode(), "https://host.example/feed")
    assert refused.value.fix


def test_a_page_of_a_feed_may_be_added_as_what_it_is(world: Workspace, web: Site) -> None:
    """K6: a feed itself can be discovered, and says that it can be followed."""
    url = publish(web, "one", "two")
    found = world.discover(url)
    assert (found.discovery.title, found.feeds[0].url) == ("The harbour", url)
    with pytest.raises(InvalidInput, match="no feed"):
        world.follow_feed(web.put("/bare", "<title>Bare</title><p>Nothing.</p>"))
