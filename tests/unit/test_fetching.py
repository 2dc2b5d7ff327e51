"""The fetcher: what it may ask, and what it takes from servers that are slow, endless or hostile."""

from __future__ import annotations

import gzip
import itertools
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lukasa.model.errors import AddressRefused, FetchFailed, InvalidInput
from lukasa.providers.web import AddressGuard, WebFetcher, WebLimits, open_fetcher
from lukasa.providers.web.addresses import read_allowed
from tests.helpers.web import Page, Site, site

BRIEF = WebLimits(seconds=1.5, silence=0.5, header_bytes=16_384, body_bytes=100_000, redirects=3)


@pytest.fixture
def victim() -> Iterator[Site]:
    """A server that nobody may reach."""
    with site() as one:
        one.put("/", "the inside")
        yield one


@pytest.fixture
def web() -> Iterator[Site]:
    """The one server that the owner allows."""
    with site() as one:
        yield one


class Names:
    """A name server of the test: it gives its answers in turn, and the last one again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = answers, 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


def fetcher(*allowed: Site, names: Names | None = None, limits: WebLimits = BRIEF) -> WebFetcher:
    networks = read_allowed(",".join(one.allowed for one in allowed))
    return WebFetcher(AddressGuard(networks, names or Names(["127.0.0.1"])), limits)


# Each of these means 127.0.0.1 or another address inside, to some program; {p} is the port of a server there.
INSIDE = """
http://127.0.0.1:{p}/ http://127.0.0.2:{p}/ http://2130706433:{p}/ http://0x7f000001:{p}/ http://0x7f.0.0.1:{p}/
http://0x7f.1:{p}/ http://0177.0.0.1:{p}/ http://017700000001:{p}/ http://0177.0.0.01:{p}/ http://127.1:{p}/
http://127.0.1:{p}/ http://127.0.0.1.:{p}/ http://127.0.0.01:{p}/ http://0:{p}/ http://0.0.0.0:{p}/ http://00:{p}/
http://[::1]:{p}/ http://[::]:{p}/ http://[0:0:0:0:0:0:0:1]:{p}/ http://[::ffff:127.0.0.1]:{p}/
http://[::ffff:7f00:1]:{p}/ http://[0:0:0:0:0:ffff:127.0.0.1]:{p}/ http://[::127.0.0.1]:{p}/ http://[::7f00:1]:{p}/
http://[64:ff9b::7f00:1]:{p}/ http://[64:ff9b:1::7f00:1]:{p}/ http://[2002:7f00:1::]:{p}/ http://[fe80::1%25lo]:{p}/
http://[fe80::1]:{p}/ http://[fd00:ec2::254]/ http://[ff02::1]:{p}/ http://[2001:0:7f00:1::]:{p}/
http://[::ffff:0:127.0.0.1]:{p}/ http://[v1.127.0.0.1]:{p}/ http://[::1]x:{p}/ http://[127.0.0.1]:{p}/
http://169.254.169.254/latest/meta-data/ http://168.63.129.16/ http://100.100.100.200/ http://100.64.0.1/
http://10.0.0.1/ http://172.16.0.1/ http://192.168.0.1/ http://192.0.0.192/ http://198.18.0.1/ http://224.0.0.1/
http://240.0.0.1/ http://255.255.255.255/ http://192.88.99.1/
http://localhost:{p}/ http://LOCALHOST:{p}/ http://localhost.:{p}/ http://inside.example:{p}/
http://１２７.０.０.１:{p}/ http://127。0。0。1:{p}/ http://①②⑦.⓪.⓪.①:{p}/ http://１２７。１:{p}/ http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{p}/
http://example.org@127.0.0.1:{p}/ http://example.org:80@127.0.0.1:{p}/ http://127.0.0.1:{p}@inside.example/
http://@127.0.0.1:{p}/ http://inside.example:{p}#@example.org/ http://inside.example:{p}?@example.org/
http://127.0.0.1:{p}\\@example.org/ http://example.org\\@127.0.0.1:{p}/ http:\\\\127.0.0.1:{p}/
http://%31%32%37.0.0.1:{p}/ http://127.0.0.1%00.example.org:{p}/ http://127.0.0.1%2eexample:{p}/
http:///127.0.0.1:{p}/ http:127.0.0.1:{p}/ //127.0.0.1:{p}/ 127.0.0.1:{p} http://127.0.0.1:/ http://127.0.0.1:0{p}/
http://127.0.0.1:99999/ http://127.0.0.1:-1/ https://127.0.0.1:{p}/ http://inside.example:22/
file:///etc/hostname file://127.0.0.1:{p}/ gopher://127.0.0.1:{p}/_GET%20/ ftp://127.0.0.1:{p}/ dict://127.0.0.1:{p}/
data:text/html,inside javascript:alert(1) ws://127.0.0.1:{p}/ jar:http://127.0.0.1:{p}/!/ HTTP+UNIX://%2Fsocket/
""".split()
SPOILT = [
    "http://127.0.0.1:{p}/\r\nX: y",
    "http://127.0.0.1:{p}/ HTTP/1.1",
    "http://127.0.0.1\t:{p}/",
    "\nhttp://127.1:{p}/",
]


@pytest.mark.parametrize("form", [*INSIDE, *SPOILT])
def test_no_form_of_an_address_inside_is_reached(form: str, victim: Site) -> None:
    """T51: a URL that means this machine or its network, however it is written, is refused before a connection."""
    with pytest.raises(AddressRefused) as refused:
        fetcher().fetch(form.replace("{p}", str(victim.port)))
    assert refused.value.fix
    assert victim.hits == []


@pytest.mark.parametrize("form", [form for form in INSIDE if form.isascii()])  # as a header is
def test_no_redirect_leads_inside(form: str, victim: Site, web: Site) -> None:
    """T51: an allowed server that redirects to a form of an address inside leads nowhere."""
    to = form.replace("{p}", str(victim.port))
    with pytest.raises((AddressRefused, FetchFailed)):
        fetcher(web).fetch(web.redirect("/", to))
    assert victim.hits == []


def test_a_name_is_resolved_once_and_its_connection_pinned() -> None:
    """T51: a name server that answers something else the second time changes nothing."""
    with site() as web, site("127.0.0.2", web.port) as inside:
        web.put("/", "the page")
        names = Names(["127.0.0.1"], ["127.0.0.2"])
        guard = AddressGuard(read_allowed(web.allowed), names)
        assert WebFetcher(guard, BRIEF).fetch(f"http://rebinding.example:{web.port}/").data == b"the page"
        assert names.asked == 1
        with pytest.raises(AddressRefused):
            WebFetcher(guard, BRIEF).fetch(f"http://rebinding.example:{web.port}/")
        assert inside.hits == []


def test_one_private_address_among_public_ones_refuses_the_name(victim: Site) -> None:
    """T51: a name with several addresses is refused if one of them is inside, whichever comes first."""
    for answers in (["93.184.215.14", "127.0.0.1"], ["127.0.0.1", "93.184.215.14"], ["2606:2800::1", "::1"]):
        with pytest.raises(AddressRefused):
            fetcher(names=Names(answers)).fetch(f"http://mixed.example:{victim.port}/")
    assert victim.hits == []


def test_an_allowed_network_is_for_the_owner_and_not_for_public_pages(web: Site) -> None:
    """T51: what a public page names does not reach the networks that only the owner may name."""
    url = web.put("/", "the page")
    assert fetcher(web).fetch(url).data == b"the page"
    with pytest.raises(AddressRefused, match="led to it"):
        fetcher(web).fetch(url, public_only=True)
    assert len(web.hits) == 1


def test_the_allowed_port_is_the_only_one(web: Site, victim: Site) -> None:
    """An address that is allowed with a port is not allowed with another one."""
    with pytest.raises(AddressRefused):
        fetcher(web).fetch(victim.url())
    assert victim.hits == []


@pytest.mark.parametrize("setting", ["0.0.0.0/0", "::/0", "wiki.example", "10.0.0.1/8", "127.0.0.1:0", "10.0.0.0/8:x"])
def test_a_setting_that_cannot_be_meant_is_refused(setting: str) -> None:
    """The setting names networks of the owner's; it cannot open the guard as a whole."""
    with pytest.raises(InvalidInput, match="LUKASA_FETCH_ALLOW") as error:
        open_fetcher({"LUKASA_FETCH_ALLOW": setting})
    assert error.value.fix


def test_what_is_sent_names_nobody(web: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has no cookie, no credential and no referrer, and no proxy of the environment sees it."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    web.pages["/"] = Page(b"one", headers={"Set-Cookie": "id=1"})
    fetch = fetcher(web)
    assert fetch.fetch(web.url()).data == b"one"
    assert fetch.fetch(web.redirect("/again", "/")).data == b"one"
    for headers in web.asked:
        assert set(headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}


def test_an_unchanged_page_is_not_sent_again(web: Site) -> None:
    """A conditional request brings the version that was had only if it changed."""
    url = web.put("/", "one", etag=True)
    first = fetcher(web).fetch(url)
    assert (first.data, first.media_type) == (b"one", "text/html; charset=utf-8")
    assert fetcher(web).fetch(url, etag=first.etag).data is None
    web.put("/", "two", etag=True)
    assert fetcher(web).fetch(url, etag=first.etag).data == b"two"


def test_redirects_are_followed_a_few_times(web: Site) -> None:
    """A page that moved is found where it is now; a circle of redirects ends."""
    web.put("/here/page", "moved")
    web.redirect("/old", "here/page", 301)
    assert fetcher(web).fetch(web.url("/old")).url == web.url("/here/page")
    with pytest.raises(FetchFailed, match="redirects more than 3 times"):
        fetcher(web).fetch(web.redirect("/round", "/round"))
    assert web.hits.count("/round") == 4


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BOMB = gzip.compress(bytes(50_000_000), 9)


def trickle(first: bytes, piece: bytes) -> Iterator[bytes]:
    """Give a piece every 50 ms, for a minute."""
    yield first
    for _ in range(1_200):
        threading.Event().wait(0.05)
        yield piece


BAD: dict[str, tuple[Page, str]] = {
    "silent": (Page(pieces=lambda: trickle(b"", b"")), "silent"),
    "a slow body": (Page(pieces=lambda: trickle(HEAD + b"\r\n", b"x")), "whole within"),
    "slow headers": (Page(pieces=lambda: trickle(HEAD, b"X: y\r\n")), "."),
    "an endless body": (
        Page(pieces=lambda: itertools.chain([HEAD + b"\r\n"], itertools.repeat(b"x" * 9999))),
        "larger",
    ),
    "endless headers": (
        Page(pieces=lambda: itertools.chain([HEAD], itertools.repeat(b"X-Y: " + b"z" * 999 + b"\r\n"))),
        ".",
    ),
    "an endless header": (Page(pieces=lambda: itertools.chain([HEAD + b"X: "], itertools.repeat(b"z" * 999))), "."),
    "endless interim answers": (Page(pieces=lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")), "larger"),
    "a declared size": (Page(pieces=lambda: [HEAD + b"Content-Length: 100001\r\n\r\n"]), "larger"),
    "a gzip bomb": (Page(BOMB, headers={"Content-Encoding": "gzip"}), "larger"),
    "damaged gzip": (Page(b"\x1f\x8bnonsense" * 9, headers={"Content-Encoding": "gzip"}), "read"),
    "half of a gzip": (Page(gzip.compress(b"abc" * 999)[:-9], headers={"Content-Encoding": "gzip"}), "read"),
    "an unknown packing": (Page(b"x", headers={"Content-Encoding": "br"}), "read"),
    "a cut-off body": (Page(pieces=lambda: [HEAD + b"Content-Length: 9\r\n\r\nhalf"]), "read"),
    "a cut-off chunk": (Page(pieces=lambda: [HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"]), "read"),
    "no HTTP": (Page(pieces=lambda: [b"220 mail.example ESMTP\r\n"]), "read"),
    "an error": (Page(b"gone", status=404), "answered 404"),
    "not modified, unasked": (Page(status=304), "answered 304"),
    "a redirect to nowhere": (Page(status=302), "nowhere"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_server_costs_a_bounded_time_and_memory(what: str, web: Site) -> None:
    """T51: whatever a server does, the fetch ends with a typed error that says what to do."""
    web.pages["/"], said = BAD[what]
    with pytest.raises(FetchFailed, match=said) as failed:
        fetcher(web).fetch(web.url())
    assert failed.value.fix


def test_a_body_may_come_without_its_length(web: Site) -> None:
    """A server may end a body by closing, or send it in chunks."""
    web.pages["/closed"] = Page(pieces=lambda: [b"HTTP/1.0 200 OK\r\n\r\n", b"the ", b"page"])
    web.pages["/chunks"] = Page(
        pieces=lambda: [HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nthe \r\n4\r\npage\r\n0\r\n\r\n"]
    )
    assert [fetcher(web).fetch(web.url(path)).data for path in ("/closed", "/chunks")] == [b"the page"] * 2


def test_a_packed_page_is_unpacked(web: Site) -> None:
    """A body in gzip is what it was before it was packed."""
    web.put("/", gzip.compress(b"words " * 99), headers={"Content-Encoding": "gzip"})
    assert fetcher(web).fetch(web.url()).data == b"words " * 99


def test_a_name_server_that_does_not_answer_ends_the_fetch() -> None:
    """T51: a name that is never resolved costs the time of a fetch, and no more."""
    forever = threading.Event()

    def silent(host: str, port: int) -> Sequence[str]:
        forever.wait(30)
        return []

    with pytest.raises(FetchFailed, match="no name server"):
        WebFetcher(AddressGuard((), silent), BRIEF).fetch("http://slow.example/")
    forever.set()


def test_robots_are_asked_where_nobody_asked_for_the_page(web: Site) -> None:
    """A page that a person asks for is fetched as a browser does; a page that a feed named only if the site lets."""
    web.put("/robots.txt", "User-agent: *\nDisallow: /private\n", "text/plain")
    web.put("/private", "one")
    web.put("/open", "two")
    assert fetcher(web).fetch(web.url("/private")).data == b"one"
    assert fetcher(web).fetch(web.url("/open"), robots=True).data == b"two"
    with pytest.raises(AddressRefused, match=r"robots\.txt"):
        fetcher(web).fetch(web.url("/private"), robots=True)
    assert web.hits == ["/private", "/robots.txt", "/open", "/robots.txt"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_certificate_is_checked_for_the_name(tmp_path: Path) -> None:
    """T51: the connection goes to the checked address, and the certificate must be the name's, of a known issuer."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=books.example"
    extra = ["-addext", "subjectAltName=DNS:books.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made.split(), *extra], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    with site(trust=server) as web:
        web.put("/", "the book")
        web.redirect("/down", f"http://books.example:{web.port}/")
        guard = AddressGuard(read_allowed(web.allowed), Names(["127.0.0.1"]))
        known = WebFetcher(guard, BRIEF, trust=ssl.create_default_context(cafile=certificate))
        assert known.fetch(f"https://books.example:{web.port}/").data == b"the book"
        with pytest.raises(FetchFailed, match="certificate"):
            known.fetch(f"https://other.example:{web.port}/")
        with pytest.raises(FetchFailed, match="certificate"):
            WebFetcher(guard, BRIEF).fetch(f"https://books.example:{web.port}/")
        with pytest.raises(AddressRefused, match="https to http"):
            known.fetch(f"https://books.example:{web.port}/down")
        assert web.hits == ["/", "/down"]
