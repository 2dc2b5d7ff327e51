"""Send one JSON request to a provider: one deadline for all attempts, bounded retries, streams, translated errors.

    ask             in the caller's thread: pass on text as it arrives; return the reply or raise, before the deadline
    └ _attempts     decide what to retry, how often and after which pause
      └ _once       one request, its status and its body
        └ _read     the body as one JSON value, or as a stream of them

The exchange runs in a thread of its own, because nothing else keeps a deadline: a read timeout restarts with every
byte, and a DNS lookup has none. When time is up the caller goes on at once, and the thread's socket is shut down.

No redirects, no proxies from the environment, certificates verified. No message holds the key, and no error
holds the request.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import importlib
import importlib.util
import json
import queue
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lukasa.model.errors import ChatError, ChatMalformed, ChatRefused, ChatUnavailable
from lukasa.ports import Reply
from lukasa.providers.chat.endpoint import Endpoint
from lukasa.providers.chat.reply_builder import ReplyBuilder, tidy

INSTALL_FIX = "pip install 'lukasa[openai]'"
_LONGEST = 86_400.0  # seconds; platform locks cannot wait much longer
_MESSAGE_BYTES = 65_536  # of an error reply
_MESSAGE_CHARS = 300
_SHORTEST_KEY = 4  # a shorter key is a dummy, and may be part of any word
_BUSY = frozenset({408, 409, 425, 429})
_REFUSALS = ("authentication", "permission", "invalid", "not_found", "billing", "too_large", "quota", "context_length")
_STREAM_OVERHEAD = 8  # a stream adds about a hundred bytes to each word
_KEY_SHAPES = re.compile(r"(?i)\bbearer\s+\S+|\b(?:sk|pk|rk|gsk|xai)[-_][\w*.…-]{6,}|\bAIza[\w-]{8,}|\S*\*{3,}\S*")


# Makes an empty builder that passes its text to the given function; each attempt needs a new one.
MakeBuilder = Callable[[Callable[[str], None]], ReplyBuilder]


def ask(
    endpoint: Endpoint,
    payload: Mapping[str, Any],
    make_builder: MakeBuilder,
    *,
    timeout: float,
    on_text: Callable[[str], None] | None,
) -> Reply:
    """Send one request and return the reply."""
    body = tidy(json.dumps(payload, ensure_ascii=False)).encode()
    exchange = _Exchange(endpoint, body, make_builder, timeout, watched=on_text is not None)
    threading.Thread(target=exchange.run, name="lukasa-chat", daemon=True).start()
    try:
        for text in exchange.outcome():
            if on_text:
                on_text(text)
    finally:
        exchange.abandon()
    return exchange.reply()


def client_installed() -> bool:
    return importlib.util.find_spec("httpx2") is not None


# --- the exchange --------------------------------------------------------------------------------------------


class _Later(Exception):
    """A failure that may be temporary. `wait` is the pause that the provider asks for, if any."""

    def __init__(self, error: ChatUnavailable, wait: float | None = None) -> None:
        super().__init__()
        self.error = error
        self.wait = wait


class _Exchange:
    """One request and its retries, in a thread, with a deadline."""

    def __init__(
        self,
        endpoint: Endpoint,
        body: bytes,
        make_builder: MakeBuilder,
        timeout: float,
        *,
        watched: bool,
    ) -> None:
        self._endpoint = endpoint
        self._body = body
        self._make_builder = make_builder
        self._timeout = timeout
        self._watched = watched
        self._deadline = time.monotonic() + min(timeout, _LONGEST)
        self._httpx: Any = _client_library()
        self._texts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._abandoned = threading.Event()
        self._socket: socket.socket | None = None
        self._shown = False
        self._result: Reply | BaseException | None = None

    # The caller's side.

    def outcome(self) -> Iterator[str]:
        """Yield the text as it arrives, until the exchange has ended or time is up."""
        with contextlib.suppress(queue.Empty):
            while (text := self._texts.get(timeout=max(0.0, self._left()))) is not None:
                yield text

    def reply(self) -> Reply:
        result = self._result
        if isinstance(result, Reply):
            return result
        if isinstance(result, ChatError):
            # The frames of an error and of its context hold the request, and the request holds the key.
            result.__context__ = None
            raise result.with_traceback(None)
        if result is not None:
            raise result
        raise self._too_late()

    def abandon(self) -> None:
        self._abandoned.set()
        if self._socket is not None:
            # Not the method of the TLS socket: it would drop the TLS session while the thread reads from it.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    # The thread's side.

    def run(self) -> None:
        try:
            result: Reply | BaseException = self._attempts()
        except BaseException as error:  # noqa: BLE001 - the thread's last handler: it is raised again for the caller
            result = error
        if not self._abandoned.is_set():
            self._result = result
        self._texts.put(None)

    def _attempts(self) -> Reply:
        limits = self._endpoint.limits
        unreadable = False
        for attempt in range(1, limits.attempts + 1):
            failure: ChatError
            try:
                return self._once()
            except ChatMalformed as error:
                failure, wait, again = error, 0.0, not unreadable
                unreadable = True
            except _Later as later:
                pause = min(limits.backoff * 2 ** (attempt - 1), limits.longest_backoff) * random.uniform(0.5, 1.0)
                failure, wait, again = later.error, pause if later.wait is None else later.wait, True
            if not again or self._shown or attempt == limits.attempts or wait >= self._left():
                break
            if self._abandoned.wait(wait):
                break
        raise failure

    def _once(self) -> Reply:
        httpx = self._httpx
        left = self._left()
        if left <= 0:
            raise _Later(self._too_late())
        timeout = httpx.Timeout(left, connect=min(left, self._endpoint.limits.connect))
        try:
            with (
                httpx.Client(verify=tls_context(self._endpoint.url), trust_env=False, timeout=timeout) as client,
                client.stream(
                    "POST",
                    self._endpoint.url,
                    content=self._body,
                    headers=self._endpoint.all_headers(),
                    extensions={"trace": self._trace},
                ) as response,
            ):
                self._check(response)
                return self._read(response)
        except httpx.ConnectError as error:
            if _distrusted(error):
                raise ChatRefused(
                    f"the certificate of {self._endpoint.host} is not trusted here",
                    fix="check the URL; for certificates of your own set SSL_CERT_FILE",
                ) from None
            raise _Later(self._unavailable("cannot be reached")) from None
        except httpx.TimeoutException:
            raise _Later(self._unavailable("gave no answer in time")) from None
        except (httpx.HTTPError, OSError):
            raise _Later(self._unavailable("broke off the connection")) from None

    def _check(self, response: Any) -> None:
        """Raise unless the status is a success."""
        status = int(response.status_code)
        if 200 <= status < 300:
            return
        body = b""
        with contextlib.suppress(self._httpx.HTTPError):
            for chunk in self._chunks(response):
                body += chunk
                if len(body) > _MESSAGE_BYTES:
                    break
        raise self._failure(status, *_provider_says(body), wait=_retry_after(response.headers.get("retry-after", "")))

    def _read(self, response: Any) -> Reply:
        builder = self._make_builder(self._show)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self._malformed("is compressed, though we asked for plain text")
        if "text/event-stream" in response.headers.get("content-type", ""):
            self._read_stream(response, builder)
        else:
            builder.whole(
                self._object(b"".join(self._sized(response, self._endpoint.limits.size)).decode("utf-8", "replace"))
            )
        return builder.reply()

    def _read_stream(self, response: Any, builder: ReplyBuilder) -> None:
        events = EventStream()
        for chunk in self._sized(response, self._endpoint.limits.size * _STREAM_OVERHEAD):
            for data in events.feed(chunk):
                builder.event(self._object(data))
            if events.done:
                return
        for data in events.finish():
            builder.event(self._object(data))
        if not builder.ended and not events.done:
            raise _Later(self._unavailable("ended the answer halfway"))

    def _object(self, text: str) -> Mapping[str, Any]:
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise self._malformed("is not JSON") from None
        if not isinstance(body, dict):
            raise self._malformed("is not a JSON object")
        if body.get("error"):
            message, kind = _message(body)
            code = body["error"].get("code") if isinstance(body["error"], dict) else None
            raise self._failure(code if isinstance(code, int) else 0, message, kind)
        return body

    def _sized(self, response: Any, most: int) -> Iterator[bytes]:
        size = 0
        for chunk in self._chunks(response):
            size += len(chunk)
            if size > most:
                raise self._malformed(f"is larger than {most:,} bytes")
            yield chunk

    def _chunks(self, response: Any) -> Iterator[bytes]:
        for chunk in response.iter_raw():
            if self._left() <= 0 or self._abandoned.is_set():
                raise _Later(self._too_late())
            yield chunk

    def _show(self, text: str) -> None:
        if self._watched:
            self._shown = True  # from now on a second attempt would repeat text
            self._texts.put(text)

    def _trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Keep the socket in use, so that the caller can end a read that would outlast the deadline."""
        if name in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._abandoned.is_set():
                raise _Later(self._too_late())

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    # Errors

    def _failure(self, status: int, message: str, kind: str, *, wait: float | None = None) -> Exception:
        """Return the error for a provider's failure: temporary, or one that needs a change."""
        host = self._endpoint.host
        said = f": {clean(message, self._endpoint.key)}" if message else ""
        what = f"{host} answered {status}{said}" if status else f"{host} reported a failure{said}"
        final = any(word in kind for word in _REFUSALS) if not status or status == 429 else False
        if final or (300 <= status < 500 and status not in _BUSY):
            return ChatRefused(what, fix=_refusal_fix(status))
        pause = f"; it asks to wait {wait:.0f} s" if wait else ""
        return _Later(ChatUnavailable(what + pause, fix="try again later", retry_after=wait), wait)

    def _unavailable(self, what: str) -> ChatUnavailable:
        host = self._endpoint.host
        return ChatUnavailable(f"{host} {what}", fix=f"try again; check that {host} can be reached from here")

    def _too_late(self) -> ChatUnavailable:
        fix = "try again, or allow more time"
        return ChatUnavailable(f"{self._endpoint.host} gave no answer within {self._timeout:g} s", fix=fix)

    def _malformed(self, what: str) -> ChatMalformed:
        return ChatMalformed(
            f"the answer of {self._endpoint.host} {what}", fix="check that the URL is that of a chat API"
        )


def _client_library() -> Any:
    try:
        return importlib.import_module("httpx2")
    except ImportError:
        raise ChatRefused("httpx2 is not installed", fix=INSTALL_FIX) from None


def _distrusted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


@functools.cache
def _verified() -> ssl.SSLContext:
    context: ssl.SSLContext = _client_library().create_ssl_context()
    return context


def tls_context(url: str) -> ssl.SSLContext:
    """Return the system's certificates, read once; for plain http an empty context, because reading them is slow."""
    return _verified() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


# --- streams and messages ------------------------------------------------------------------------------------


class EventStream:
    """Parse server-sent events: takes bytes in any pieces, yields the data of each event. `done` is set by [DONE]."""

    def __init__(self) -> None:
        self.done = False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[str]:
        yield from self._lines(self._rest + self._decoder.decode(chunk))

    def finish(self) -> Iterator[str]:
        """Yield the last event's data, if the blank line after it never came."""
        yield from self._lines(self._rest + self._decoder.decode(b"", True) + "\n\n")

    def _lines(self, text: str) -> Iterator[str]:
        # A carriage return at the very end may be half of a line end.
        held = "\r" if text.endswith("\r") else ""
        *lines, rest = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = rest + held
        for line in lines:
            if line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
            elif not line and self._data:
                data, self._data = "\n".join(self._data), []
                self.done = self.done or data.strip() == "[DONE]"
                if self.done:
                    return
                if data.strip():
                    yield data


def clean(message: str, key: str) -> str:
    """Return a provider's message as one short line, without the key or text that looks like a key."""
    if len(key) >= _SHORTEST_KEY:
        message = message.replace(key, "***")
    # Cut first, generously: the patterns take quadratic time on a long word.
    message = _KEY_SHAPES.sub("***", tidy(message[: 6 * _MESSAGE_CHARS]))
    message = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    return message if len(message) <= _MESSAGE_CHARS else message[: _MESSAGE_CHARS - 1] + "…"


def _provider_says(body: bytes) -> tuple[str, str]:
    """Return the message and the kind of an error reply; both empty if it is something else, such as an HTML page."""
    try:
        return _message(json.loads(body.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return "", ""


def _message(body: object) -> tuple[str, str]:
    if not isinstance(body, dict):
        return "", ""
    error = body.get("error")
    inner = error if isinstance(error, dict) else body
    found = (value for value in (inner.get("message"), error, inner.get("detail")) if isinstance(value, str))
    return next(found, ""), f"{inner.get('type')} {inner.get('code')}"


def _refusal_fix(status: int) -> str:
    if status in (401, 403):
        return "check the API key and its permissions"
    if status == 404:
        return "check the name of the model and the URL"
    if 300 <= status < 400:
        return "set the URL to the target of the redirect; redirects are not followed"
    return "check the name of the model and its limits"


def _retry_after(value: str) -> float | None:
    """Return the seconds to wait, from a number or a date; None if the value is neither."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at.astimezone(UTC) - datetime.now(UTC)).total_seconds())
