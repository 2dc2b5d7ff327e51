"""Get pages, feeds and repositories from the web: only when asked, only from where the owner lets it, within bounds.

No cookie, credential or proxy takes part. No link is followed except a redirect, and each redirect is checked anew.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urljoin
from urllib.robotparser import RobotFileParser

from lukasa.model.discovery import Feed, FeedLink, Repository
from lukasa.model.errors import AddressRefused, FetchFailed
from lukasa.ports import Fetched
from lukasa.providers.web import feeds, repositories
from lukasa.providers.web.addresses import ALLOW, AddressGuard, Target, is_public, read_allowed, read_url
from lukasa.providers.web.exchange import Answer, WebLimits, exchange

__all__ = ["ALLOW", "AddressGuard", "WebFetcher", "WebLimits", "open_fetcher"]

AGENT = "lukasa"
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {"User-Agent": AGENT, "Accept": "*/*", "Accept-Encoding": "gzip", "Connection": "close"}
_MOST_SAID = 1_000  # characters of an ETag or a date that are sent back
_ROBOTS = 512 * 1024  # bytes
_REFS = "/info/refs?service=git-upload-pack"
_DUMB = re.compile(rb"[0-9a-f]{40}([0-9a-f]{24})?\trefs/")


def open_fetcher(env: Mapping[str, str]) -> WebFetcher:
    """Return a fetcher with the networks that the environment allows."""
    return WebFetcher(AddressGuard(read_allowed(env.get(ALLOW, ""))))


class WebFetcher:
    """Gets what a URL names; see `lukasa.ports.Fetcher`. It keeps nothing, so threads may share it."""

    def __init__(
        self, guard: AddressGuard | None = None, limits: WebLimits | None = None, *, trust: ssl.SSLContext | None = None
    ) -> None:
        self.guard = guard or AddressGuard()
        self.limits = limits or WebLimits()
        self._trust = trust

    def fetch(
        self, url: str, *, etag: str = "", modified: str = "", public_only: bool = False, robots: bool = False
    ) -> Fetched:
        """Return what a URL names, after at most a few redirects."""
        ends = time.monotonic() + self.limits.seconds
        target, public = read_url(url), True
        for _ in range(self.limits.redirects + 1):
            if robots:
                self._ask_robots(target, ends, public_only)
            answer, public = self._ask(target, _conditions(etag, modified), ends, public_only, self.limits)
            if answer.status in _REDIRECTS:
                # A public page must not lead into networks that only the owner may name.
                target, public_only = _redirected(target, answer), public_only or public
                continue
            return _fetched(target, answer, public, asked=bool(etag or modified))
        raise FetchFailed(
            f"{url[:120]!r} redirects more than {self.limits.redirects} times",
            fix="give the address of the page itself",
        )

    def clone(self, url: str, *, local: bool = False) -> Repository:
        """Return the newest commit of a repository; see `lukasa.ports.Web`."""
        repositories.refuse_other(url)
        if url.lower().startswith("file:"):
            if not local:
                raise AddressRefused(
                    f"{url[:120]!r} is a folder of this machine",
                    fix="the owner may give it at the command line: `lukasa discover file://…`",
                )
            return repositories.clone_local(url)
        target = read_url(url)
        base = Target(target.scheme, target.host, target.port, target.path.partition("?")[0].rstrip("/")).url
        found = self.fetch(base + _REFS)
        kind = found.media_type.partition(";")[0].strip()
        smart = kind == "application/x-git-upload-pack-advertisement"
        if not smart and not _DUMB.match(found.data or b""):
            raise FetchFailed(f"there is no git repository at {url[:120]!r}", fix="give the address that git clones")
        # Like a redirect: a public page must not lead into networks that only the owner may name.
        return repositories.clone_web(
            found.url.removesuffix(_REFS), self.guard, smart=smart, public_only=found.public, url=url
        )

    def is_feed(self, fetched: Fetched) -> bool:
        """Say whether what was fetched is a feed."""
        return feeds.is_feed(fetched.data or b"", fetched.media_type)

    def feed(self, fetched: Fetched) -> Feed:
        """Return the feed that was fetched."""
        return feeds.read_feed(fetched.data or b"", fetched.url)

    def feed_links(self, fetched: Fetched) -> tuple[FeedLink, ...]:
        """Return the feeds that a page names."""
        kind = fetched.media_type.partition(";")[0].strip().lower()
        if kind not in ("text/html", "application/xhtml+xml", ""):
            return ()
        return feeds.feed_links((fetched.data or b"").decode("utf-8", "replace"), fetched.url)

    def _ask(
        self, target: Target, headers: Mapping[str, str], ends: float, public_only: bool, limits: WebLimits
    ) -> tuple[Answer, bool]:
        """Return the answer, and whether it is from the public internet."""
        addresses = self.guard.addresses(target, ends - time.monotonic(), public_only=public_only)
        answer = exchange(target, addresses, {**_HEADERS, **headers}, limits, ends, self._trust)
        return answer, all(is_public(address) for address in addresses)

    def _ask_robots(self, target: Target, ends: float, public_only: bool) -> None:
        """Raise AddressRefused if the site asks programs not to get this. A site without a file of rules does not."""
        rules = Target(target.scheme, target.host, target.port, "/robots.txt", target.literal)
        limits = WebLimits(seconds=self.limits.seconds, silence=self.limits.silence, body_bytes=_ROBOTS)
        answer, _ = self._ask(rules, {}, ends, public_only, limits)
        if answer.status != 200:
            return
        parser = RobotFileParser()
        parser.parse(answer.body.decode("utf-8", "replace").splitlines())
        if not parser.can_fetch(AGENT, target.url):
            raise AddressRefused(
                f"the robots.txt of {target.host} refuses {target.path[:120]!r}", fix="open it yourself"
            )


def _conditions(etag: str, modified: str) -> dict[str, str]:
    """Return the headers that ask for a version other than this one."""
    given = {"If-None-Match": etag, "If-Modified-Since": modified}
    return {name: value for name, value in given.items() if value and len(value) <= _MOST_SAID and value.isprintable()}


def _redirected(target: Target, answer: Answer) -> Target:
    where = answer.headers.get("location", "")
    if not where:
        raise FetchFailed(f"{target.host} redirects to nowhere", fix="check the URL in a browser")
    try:
        url = urljoin(target.url, where)
    except ValueError:
        raise AddressRefused(f"{target.host} redirects to what is no URL", fix="check the URL in a browser") from None
    to = read_url(url)
    if target.secure and not to.secure:
        raise AddressRefused(
            f"{target.host} redirects from https to http", fix="give the http URL itself, if an open connection will do"
        )
    return to


def _fetched(target: Target, answer: Answer, public: bool, *, asked: bool) -> Fetched:
    said = answer.headers
    etag, modified = (said.get(name, "")[:_MOST_SAID] for name in ("etag", "last-modified"))
    if answer.status == 304 and asked:
        return Fetched(target.url, "", None, etag, modified, public)
    if answer.status != 200:
        fix = "check the URL in a browser" if answer.status < 500 and answer.status != 429 else "try again later"
        after = said.get("retry-after", "")
        raise FetchFailed(
            f"{target.host} answered {answer.status}",
            fix=fix,
            status=answer.status,
            retry_after=float(after) if after.isdigit() and len(after) < 8 else None,
        )
    return Fetched(target.url, said.get("content-type", ""), answer.body, etag, modified, public)
