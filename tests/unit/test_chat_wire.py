"""Models over the wire: what becomes of a request when the provider fails, is slow, or answers with garbage."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ssl import CERT_REQUIRED

import pytest

from lukasa.model.errors import ChatError, ChatMalformed, ChatRefused, ChatUnavailable, InvalidInput
from lukasa.ports import Chat, Message, Reply, Tool
from lukasa.providers.chat.anthropic_chat import AnthropicChat
from lukasa.providers.chat.endpoint import Limits
from lukasa.providers.chat.openai_chat import OpenAIChat
from lukasa.providers.chat.wire import tls_context
from tests.helpers import chat_server as faults
from tests.helpers.chat_server import KEY, ChatServer, Fault, follow, when

HELLO = [Message("user", "hello")]
LOOK_UP = Tool("look_up", "Looks a city up.", {"type": "object", "properties": {"city": {"type": "string"}}})
LIMITS = Limits(attempts=3, backoff=0.0)
RULES = follow(when("hello").say("good day to you"), when("city").say("one moment").call("look_up", {"city": "Oslo"}))


@dataclass(frozen=True)
class Way:
    """One format, streamed or not."""

    style: str
    streamed: bool

    def open(self, server: ChatServer, key: str = KEY, limits: Limits = LIMITS) -> Chat:
        if self.style == "openai":
            return OpenAIChat(server.openai_url, "fake", key, limits=limits)
        return AnthropicChat("fake", key, server.url, limits=limits)

    def ask(self, server: ChatServer, messages: list[Message] | None = None, timeout: float = 30.0) -> Reply:
        return self.reply(self.open(server), messages or HELLO, timeout)

    def reply(self, chat: Chat, messages: list[Message], timeout: float = 30.0) -> Reply:
        shown: list[str] = []
        reply = chat.reply(messages, [LOOK_UP], timeout=timeout, on_text=shown.append if self.streamed else None)
        assert not self.streamed or "".join(shown) == reply.text
        return reply


WAYS = [Way(style, streamed) for style in ("openai", "anthropic") for streamed in (False, True)]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda w: f"{w.style}{'-stream' if w.streamed else ''}")
streamed_ways = pytest.mark.parametrize("way", [w for w in WAYS if w.streamed], ids=lambda w: w.style)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(RULES) as running:
        yield running


# --- what passes is tried again ------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.status(500, times=2), id="500-twice"),
        pytest.param(faults.status(503), id="503"),
        pytest.param(faults.status(529, kind="overloaded_error"), id="529"),
        pytest.param(faults.status(408), id="408"),
        pytest.param(faults.status(429), id="429"),
        pytest.param(faults.status(429, retry_after="0"), id="429-retry-after"),
        pytest.param(faults.status(429, retry_after="soon"), id="429-retry-after-unreadable"),
        pytest.param(faults.reset(), id="reset"),
        pytest.param(faults.html(), id="html"),
        pytest.param(faults.empty(), id="empty"),
        pytest.param(faults.truncated(), id="truncated"),
        pytest.param(faults.wrong_types(), id="wrong-types"),
        pytest.param(faults.raw(b"[1, 2]"), id="a-list"),
        pytest.param(faults.raw(b'{"choices": [], "content": []}'), id="nothing-said"),
        pytest.param(faults.raw(b"[" * 200_000), id="deep"),
        pytest.param(faults.raw(b"\xff\xfe\x00", "text/event-stream"), id="no-events"),
        pytest.param(faults.raw(b"data: {oops\n\n", "text/event-stream"), id="bad-event"),
        pytest.param(
            faults.raw(b'data: {"error": {"message": "overloaded"}}\n\n', "text/event-stream"), id="error-event"
        ),
        pytest.param(faults.raw(b'{"error": {"code": 502, "message": "upstream"}}'), id="error-in-200"),
        pytest.param(faults.unfinished_think(), id="only-thought"),
    ],
)
def test_what_may_pass_is_tried_again(server: ChatServer, way: Way, fault: Fault) -> None:
    """T05: a passing fault of the provider costs a retry and nothing else."""
    times = fault.times
    server.plan(fault)
    assert way.ask(server).text == "good day to you"
    assert len(server.asked) == times + 1


@every_way
@pytest.mark.parametrize("fault", [faults.reset(after=1), faults.cut(after=1)], ids=["reset", "cut"])
def test_an_answer_that_breaks_off_is_asked_for_again(server: ChatServer, way: Way, fault: Fault) -> None:
    """T05: half an answer of which nothing was shown is no answer."""
    server.plan(fault)
    assert way.ask(server).text == "good day to you"
    assert len(server.asked) == 2


def test_a_huge_answer_is_not_read(server: ChatServer) -> None:
    """T05: 5 MB are refused as malformed, after asking once more."""
    server.always(faults.huge())
    with pytest.raises(ChatMalformed):
        Way("openai", False).ask(server)
    assert len(server.asked) == 2


@streamed_ways
def test_a_huge_stream_is_not_read_to_its_end(server: ChatServer, way: Way) -> None:
    """T05: a stream that never stops talking is cut off; what was shown is not shown twice."""
    server.always(faults.huge())
    shown: list[str] = []
    with pytest.raises(ChatMalformed):
        way.open(server).reply(HELLO, on_text=shown.append)
    assert len(server.asked) == 1
    assert sum(map(len, shown)) <= 1_000_000


def test_an_answer_compressed_unasked_is_malformed(server: ChatServer) -> None:
    """T05: nothing is unpacked, so a small answer cannot become a large one."""
    server.always(Fault(body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}))
    with pytest.raises(ChatMalformed):
        Way("openai", False).ask(server)
    assert server.asked[0].headers["accept-encoding"] == "identity"


# --- within bounds -------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize(
    ("fault", "error", "requests"),
    [
        pytest.param(faults.status(500), ChatUnavailable, 3, id="500"),
        pytest.param(faults.status(429, retry_after="0"), ChatUnavailable, 3, id="429"),
        pytest.param(faults.reset(), ChatUnavailable, 3, id="reset"),
        pytest.param(faults.html(), ChatMalformed, 2, id="html"),
        pytest.param(faults.empty(), ChatMalformed, 2, id="empty"),
        pytest.param(faults.wrong_types(), ChatMalformed, 2, id="wrong-types"),
        pytest.param(faults.unfinished_think(), ChatMalformed, 2, id="only-thought"),
    ],
)
def test_attempts_are_bounded(
    server: ChatServer, way: Way, fault: Fault, error: type[ChatError], requests: int
) -> None:
    """T06: a provider that never recovers is asked three times, one that answers garbage twice."""
    server.always(fault)
    with pytest.raises(error):
        way.ask(server)
    assert len(server.asked) == requests


def test_garbage_among_failures_is_still_bounded(server: ChatServer) -> None:
    """T06: faults of several kinds do not add up to more attempts."""
    server.plan(faults.html(), faults.status(500), faults.empty())
    with pytest.raises(ChatMalformed):
        Way("openai", False).ask(server)
    assert len(server.asked) == 3


@every_way
def test_after_healing_it_answers(server: ChatServer, way: Way) -> None:
    """T05: the same chat works again as soon as the provider does."""
    chat = way.open(server)
    server.always(faults.status(503))
    with pytest.raises(ChatUnavailable):
        way.reply(chat, HELLO)
    server.always(None)
    assert way.reply(chat, HELLO).text == "good day to you"


def test_nobody_listens() -> None:
    """T05: a server that is not there is unavailable, and the message says which."""
    with ChatServer() as gone:
        url = gone.openai_url
    with pytest.raises(ChatUnavailable, match=r"127\.0\.0\.1:\d+ cannot be reached"):
        OpenAIChat(url, "fake", limits=LIMITS).reply(HELLO)


# --- the deadline --------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("fault", [faults.hold(), faults.hold(after=1)], ids=["silent", "midway"])
def test_a_silent_provider_is_given_up(server: ChatServer, way: Way, fault: Fault) -> None:
    """T05: no answer within the time allowed is an error, and the time is not used for another attempt."""
    server.always(fault)
    with pytest.raises(ChatUnavailable):
        way.open(server).reply(HELLO, timeout=0.3, on_text=ignore if way.streamed else None)
    assert len(server.asked) == 1


@every_way
def test_bytes_that_drip_in_do_not_extend_the_deadline(server: ChatServer, way: Way) -> None:
    """T05: keep-alives without end are no answer; a read timeout alone would wait for ever."""
    server.always(faults.drip())
    with pytest.raises(ChatUnavailable, match=r"no answer within 0\.3 s"):
        way.open(server).reply(HELLO, timeout=0.3, on_text=ignore if way.streamed else None)
    assert len(server.asked) == 1


def test_a_pause_longer_than_the_time_left_is_not_waited_for(server: ChatServer) -> None:
    """T06: Retry-After beyond the deadline ends the exchange at once, and is told."""
    server.always(faults.status(429, retry_after="3600"))
    with pytest.raises(ChatUnavailable, match="asks to wait 3600 s"):
        Way("openai", False).ask(server)
    assert len(server.asked) == 1


def test_a_pause_may_be_a_date(server: ChatServer) -> None:
    """T06: Retry-After as a date is understood: one in the past means now, one far off is not waited for."""
    past, future = (format_datetime(datetime.now(UTC) + timedelta(hours=h), usegmt=True) for h in (-1, 1))
    server.plan(faults.status(429, retry_after=past), faults.status(429, retry_after=future))
    with pytest.raises(ChatUnavailable, match="asks to wait"):
        Way("openai", False).ask(server)
    assert len(server.asked) == 2


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_no_time_no_request(server: ChatServer, timeout: float) -> None:
    """T05: without time left nothing is sent."""
    with pytest.raises(ChatUnavailable):
        Way("openai", False).ask(server, timeout=timeout)
    assert server.asked == []


def test_endless_time_is_allowed(server: ChatServer) -> None:
    """T05: an infinite timeout is a long one, not an error."""
    assert Way("openai", False).ask(server, timeout=float("inf")).text == "good day to you"


def test_the_backoff_fits_the_deadline(server: ChatServer) -> None:
    """T06: a pause between attempts that would outlast the deadline is not begun."""
    server.always(faults.status(500))
    chat = Way("openai", False).open(server, limits=Limits(backoff=100.0, longest_backoff=100.0))
    with pytest.raises(ChatUnavailable, match="answered 500"):
        chat.reply(HELLO, timeout=20.0)
    assert len(server.asked) == 1


# --- streams -------------------------------------------------------------------------------------------------


def ignore(_: str) -> None:
    """Text that nobody reads."""


@streamed_ways
def test_text_is_given_as_it_arrives(server: ChatServer, way: Way) -> None:
    """U1: the first words are shown while the provider still speaks."""
    server.plan(faults.hold(after=6 if way.style == "anthropic" else 3))
    shown: list[str] = []

    def on_text(text: str) -> None:
        shown.append(text)
        server.release.set()

    assert way.open(server).reply(HELLO, on_text=on_text).text == "good day to you"
    assert len(shown) > 1


@streamed_ways
@pytest.mark.parametrize("fault", [faults.reset(after=6, held=True), faults.cut(after=6)], ids=["reset", "cut"])
def test_what_was_shown_is_not_said_twice(server: ChatServer, way: Way, fault: Fault) -> None:
    """T05: a stream that breaks off after words were shown is an error, not a second answer behind half a first."""
    server.model = follow(otherwise="a rather long answer that takes many pieces to send")
    server.plan(fault)
    shown: list[str] = []

    def on_text(text: str) -> None:
        shown.append(text)
        server.release.set()

    with pytest.raises(ChatUnavailable):
        way.open(server).reply(HELLO, on_text=on_text)
    assert shown
    assert len(server.asked) == 1


@streamed_ways
def test_a_listener_runs_in_the_callers_thread(server: ChatServer, way: Way) -> None:
    """U1: on_text is called where reply was called, so it may touch what belongs to that thread."""
    threads: set[int] = set()
    way.open(server).reply(HELLO, on_text=lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


@streamed_ways
def test_an_error_of_the_listener_is_its_own(server: ChatServer, way: Way) -> None:
    """U1: what on_text raises ends the exchange and reaches the caller as it is."""

    def on_text(_: str) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        way.open(server).reply(HELLO, on_text=on_text)


@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_a_server_that_cannot_stream(server: ChatServer, style: str) -> None:
    """T05: a plain answer to a request for a stream is read as what it is, and shown."""
    server.plan(faults.duplicate_keys())  # also: a body with a key given twice is read
    assert Way(style, True).ask(server).text == "good day to you"
    assert server.asked[0].stream
    assert len(server.asked) == 1


def test_a_server_that_refuses_stream_options(server: ChatServer) -> None:
    """T05: a strict server's dislike of the one optional field costs the token count, not the answer."""
    server.plan(faults.status(422, "Extra inputs are not permitted: stream_options"))
    reply = Way("openai", True).ask(server)
    assert reply.text == "good day to you"
    assert reply.usage.prompt == 0
    assert "stream_options" not in server.asked[1].body


# --- refusals ------------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
def test_a_refusal_is_final(server: ChatServer, way: Way, code: int) -> None:
    """T06: what asking again cannot change is not asked again; the provider's reason is told."""
    server.always(faults.status(code, "the model `fake` is not for you"))
    with pytest.raises(ChatRefused, match="not for you") as caught:
        way.ask(server)
    assert caught.value.fix
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", ["insufficient_quota", "billing_error"])
def test_an_empty_purse_is_a_refusal(server: ChatServer, kind: str) -> None:
    """T06: 429 for want of money is no reason to try again."""
    server.always(faults.status(429, "You exceeded your current quota", kind=kind))
    with pytest.raises(ChatRefused, match="quota"):
        Way("openai", False).ask(server)
    assert len(server.asked) == 1


@streamed_ways
def test_a_refusal_in_a_stream(server: ChatServer, way: Way) -> None:
    """T05: an error that comes as an event with status 200 is told as what it is."""
    event = b'data: {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}\n\n'
    server.always(faults.raw(event, "text/event-stream"))
    with pytest.raises(ChatRefused, match="too long"):
        way.ask(server)


@pytest.mark.parametrize(("style", "finish"), [("openai", "content_filter"), ("anthropic", "refusal")])
def test_a_withheld_answer(server: ChatServer, style: str, finish: str) -> None:
    """T05: a filtered answer is refused, not taken for an empty one."""
    server.model = lambda _: faults.Said(finish=finish)
    with pytest.raises(ChatRefused, match="withheld"):
        Way(style, False).ask(server)
    assert len(server.asked) == 1


@every_way
def test_an_answer_that_ended_early_says_so(server: ChatServer, way: Way) -> None:
    """T05: its text may be shown; a caller that needs the whole gets an error instead."""
    openai = way.style == "openai"
    server.model = lambda _: faults.Said("[1, 2]", finish="length" if openai else "max_tokens")
    with pytest.raises(InvalidInput, match="limit of tokens"):
        way.ask(server).whole_text()
    server.model = lambda _: faults.Said("[1, 2]", finish="content_filter" if openai else "refusal")
    reply = way.ask(server)
    assert (reply.text, reply.cut) == ("[1, 2]", "withheld")
    with pytest.raises(ChatRefused, match="withheld"):
        reply.whole_text()
    server.model = lambda _: faults.Said("[1, 2]")
    assert way.ask(server).whole_text() == "[1, 2]"


def test_redirects_are_not_followed(server: ChatServer) -> None:
    """T50: the key goes to the host it was given for, and nowhere that host points to."""
    with ChatServer(RULES) as elsewhere:
        server.always(faults.redirect(f"{elsewhere.openai_url}/chat/completions"))
        with pytest.raises(ChatRefused, match="307"):
            Way("openai", False).ask(server)
        assert elsewhere.asked == []


def test_proxies_of_the_environment_are_ignored(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """T50: a proxy that some other program wants does not get to see the conversation."""
    with ChatServer(RULES) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert Way("openai", False).ask(server).text == "good day to you"
        assert proxy.asked == []


def test_certificates_are_verified() -> None:
    """T50: an https provider must prove who it is."""
    context = tls_context("https://api.example/v1")
    assert context.verify_mode is CERT_REQUIRED
    assert context.check_hostname


# --- secrets -------------------------------------------------------------------------------------------------

FAILING = [
    faults.status(500, f"key was {KEY}"),
    faults.status(400, f"Authorization: Bearer {KEY}"),
    faults.raw(f'{{"error": {{"message": "bad {KEY}"}}}}'.encode()),
    faults.raw(KEY.encode()),
    faults.reset(),
]


@every_way
@pytest.mark.parametrize("fault", FAILING, ids=["500", "400", "error-in-200", "body", "reset"])
def test_the_key_is_in_no_error_and_no_log(
    server: ChatServer, way: Way, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """T50: even a provider that echoes the key cannot bring it into a message, a traceback or a log."""
    caplog.set_level(logging.DEBUG)
    server.always(fault)
    with pytest.raises(ChatError) as caught:
        way.ask(server)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert KEY not in told
    assert KEY[:12] not in told
    assert server.asked[0].key == KEY


@every_way
def test_a_wrong_key_is_told_without_showing_it(way: Way) -> None:
    """T50: the refusal of a key names the host and the remedy, and not the key."""
    with ChatServer(RULES, key="sk-the-right-one") as strict, pytest.raises(ChatRefused) as caught:
        way.ask(strict)
    assert KEY not in str(caught.value)
    assert "401" in caught.value.message
    assert "key" in caught.value.fix


def test_no_frame_of_an_error_holds_the_key(server: ChatServer) -> None:
    """T50: a crash report that prints the variables of our frames, or what led to the error, prints no key."""
    chat = Way("openai", False).open(server)
    server.always(faults.status(500))
    with pytest.raises(ChatUnavailable) as caught:
        chat.reply(HELLO)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert KEY not in repr([frame.f_locals for frame in frames if "lukasa/adapters" in frame.f_code.co_filename])
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("key", ["sk-two\nlines", "sk-ünïcode", "sk with blanks", "sk-nul\0"])
@pytest.mark.parametrize("make", [lambda k: OpenAIChat("", "m", k), lambda k: AnthropicChat("m", k)])
def test_an_impossible_key_is_refused_unseen(key: str, make: Callable[[str], Chat]) -> None:
    """T50: a key that no header can carry is refused before a client could quote it."""
    with pytest.raises(ChatRefused) as caught:
        make(key)
    assert key not in str(caught.value)


def test_no_key_no_header(server: ChatServer) -> None:
    """B1: a server of one's own is asked without a key."""
    assert Way("openai", False).open(server, key="").reply(HELLO).text == "good day to you"
    assert "authorization" not in server.asked[0].headers


# --- sharing, and doing without ------------------------------------------------------------------------------


@every_way
def test_threads_share_a_chat(server: ChatServer, way: Way) -> None:
    """U1: one chat answers many threads at once, each with its own answer."""
    server.model = lambda asked: Reply(f"you said {asked.said}")
    chat = way.open(server)
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda n: way.reply(chat, [Message("user", f"number {n}")]), range(24)))
    assert [reply.text for reply in replies] == [f"you said number {n}" for n in range(24)]


def test_without_the_client_the_error_says_what_to_install() -> None:
    """B1: without the extra a chat can be made, and asking it says what is missing."""
    program = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from lukasa.providers.chat.openai_chat import OpenAIChat\n"
        "from lukasa.model.errors import ChatRefused\n"
        "from lukasa.ports import Message\n"
        "try: OpenAIChat('http://127.0.0.1:9/v1', 'm').reply([Message('user', 'x')])\n"
        "except ChatRefused as error: print(error.fix)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "pip install 'lukasa[openai]'"
