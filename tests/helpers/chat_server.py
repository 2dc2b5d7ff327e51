"""A language-model provider that behaves: a real HTTP server on loopback that speaks both wire formats.

    with ChatServer(follow(when("weather").call("look_up", {"city": "Oslo"}))) as server:
        chat = open_chat("openai:fake", server.env)           # or "anthropic:fake", the same rules answer
        reply = chat.reply([Message("user", "the weather?")], [look_up])
        assert server.asked[0].messages[-1].content == "the weather?"

**The model** is any function from what was asked (`Asked`: the port's own messages and tools, whichever the format) to
a `Reply` or a `Said`. `follow(*rules, otherwise="ok")` makes one from rules:

    when("weather").call("look_up", {"city": "Oslo"})   the last user message contains it (case does not matter)
    when("hello").say("hello yourself")                 answer with this text
    when("both").call("a", {}).call("b", {})            several calls in one reply

The first rule that fits decides. After a tool result `follow` answers with the text of the results, one a line, so a
loop ends. For more steps write a function: `lambda asked: Reply("...")`; look at `asked.said` (the last user message),
`asked.results` (the tool results since the model last spoke), `asked.tools` (names) and `asked.system`.

**Threads.** A request that creates or continues one, as Anthropic's SDK does, is answered from what the server holds of
it: `asked.body` and `asked.messages` are the whole conversation, `asked.sent` is what came over the wire.

**Manners.** Like the real ones it answers 400 to a request they would refuse: a tool result without its call, a call
left without result, an empty Anthropic text block, a bad tool name, no max_tokens. With `ChatServer(..., key="...")` it
answers 401 to any other key, and echoes the wrong key in the message, as an unkind provider would.

**Faults.** `server.plan(fault, fault, ...)` says what becomes of the next requests, in order; when the plan is used up
the server behaves. `server.always(fault)` is for every request from now on (`always(None)` heals it). Every request
counts, retries too, and every one is in `server.asked`.

    status(500, times=2)     an error reply; status(429, retry_after="0"); status(529)
    hold()                   wait for `server.release` (an Event) before the answer; hold(after=2) midway
    drip()                   keep-alives, and nothing else, until `server.release`
    reset()                  a TCP reset before a byte; reset(after=2) midway
    cut(after=2)             the stream ends early, in good order but without its end mark
    html() empty() truncated() wrong_types() huge() duplicate_keys()    replies that are no answer
    raw(body, type)          any body with status 200
    think() unfinished_think() fenced() trailing_comma() prose() broken_arguments() list_arguments() same_ids()
    surrogates() repeated_argument()                                    an answer, but untidy

Midway is after so many stream events; where the answer is no stream, after half of its body. A reset throws away what
the client has not read yet: where it must have read, use `reset(after=2, held=True)` and then set `server.release`.
`server.holding` is set while a `hold` waits, so a test knows that the request is on its way. A hold ends by itself
after 30 s and when the server closes. An error inside a model function is raised again when the `with` block ends.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Struct, field
from msgspec.structs import replace

from lukasa.ports import Message, Reply, ToolCall, Usage

Style = Literal["openai", "anthropic"]
KEY = "sk-test-canary-0123456789abcdef"
USUAL = Usage(11, 7)
PATIENCE = 30.0  # seconds a held request waits at most


# --- what was asked, what is said ----------------------------------------------------------------------------


class Asked(Struct, frozen=True):
    """One request as it arrived: on the wire (`path`, `headers`, `body`), and in the port's words."""

    style: Style
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    messages: tuple[Message, ...]  # the system message first, if there is one
    tools: tuple[str, ...]
    sent: Mapping[str, Any] = field(default_factory=dict)  # the body without what the server held of its thread
    reply_id: str = "msg_1"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def key(self) -> str:
        """The key it came with; empty if none."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def system(self) -> str:
        return "\n\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def said(self) -> str:
        """The last thing the user said."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def results(self) -> tuple[str, ...]:
        """The tool results that wait for an answer, in order; none if the user spoke last."""
        found: list[str] = []
        for message in reversed(self.messages):
            if message.role != "tool":
                break
            found.insert(0, message.content)
        return tuple(found)


class SaidCall(Struct, frozen=True):
    """A tool call with its arguments as the very text that goes over the wire."""

    id: str
    name: str
    arguments: str


class Said(Struct, frozen=True):
    """What the model says, as raw as it goes out."""

    text: str = ""
    calls: tuple[SaidCall, ...] = ()
    usage: Usage = USUAL
    finish: str = ""  # the provider's own word for why it ended; the usual one if empty


Model = Callable[[Asked], Reply | Said]


class Rule(Struct, frozen=True):
    """Answer the user's last message, if it contains `words`, with a text, calls, or both."""

    words: str
    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def say(self, text: str) -> Rule:
        return replace(self, text=text)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Rule:
        return replace(self, calls=(*self.calls, (name, arguments)))

    def reply(self, turn: int) -> Reply:
        calls = tuple(ToolCall(f"call_{turn}_{i}", name, given) for i, (name, given) in enumerate(self.calls))
        return Reply(self.text, calls)


def when(words: str) -> Rule:
    return Rule(words)


def follow(*rules: Rule, otherwise: str = "ok") -> Model:
    """A model that follows rules, and after tool results repeats them."""

    def model(asked: Asked) -> Reply:
        if asked.results:
            return Reply("\n".join(asked.results))
        fitting = (rule for rule in rules if rule.words.lower() in asked.said.lower())
        return next(fitting, Rule("", otherwise)).reply(len(asked.messages))

    return model


# --- faults --------------------------------------------------------------------------------------------------


class Fault(Struct, frozen=True):
    """What goes wrong with one request; the functions below make them."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # sent instead of the answer
    content_type: str = "application/json"
    spoil: Callable[[bytes], bytes] | None = None  # what becomes of the finished JSON body
    alter: Callable[[Said], Said] | None = None  # what becomes of the answer before it is written
    hold: bool = False
    drip: bool = False
    reset: bool = False
    cut: bool = False
    after: int = 0  # stream events that still go out
    times: int = 1


def status(
    code: int, message: str = "made to fail", *, retry_after: str | None = None, kind: str = "made_up", times: int = 1
) -> Fault:
    body = json.dumps({"type": "error", "error": {"type": kind, "code": kind, "message": message}}).encode()
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Fault(status=code, headers=headers, body=body, times=times)


def redirect(to: str) -> Fault:
    return Fault(status=307, headers={"Location": to}, body=b"")


def hold(*, after: int = 0) -> Fault:
    return Fault(hold=True, after=after)


def drip() -> Fault:
    return Fault(drip=True)


def reset(*, after: int = 0, held: bool = False, times: int = 1) -> Fault:
    return Fault(reset=True, after=after, hold=held, times=times)


def cut(*, after: int = 1, times: int = 1) -> Fault:
    return Fault(cut=True, after=after, times=times)


def raw(body: bytes, content_type: str = "application/json", *, times: int = 1) -> Fault:
    return Fault(body=body, content_type=content_type, times=times)


def html(*, times: int = 1) -> Fault:
    return raw(b"<!doctype html><html><body>Welcome to the captive portal</body></html>", "text/html", times=times)


def empty(*, times: int = 1) -> Fault:
    return raw(b"", times=times)


def truncated(*, times: int = 1) -> Fault:
    return Fault(spoil=lambda body: body[: len(body) // 2], times=times)


def wrong_types(*, times: int = 1) -> Fault:
    """Every field that should hold something holds something else."""
    return raw(b'{"choices": {"0": "text"}, "content": "text", "usage": [1, 2], "id": 5}', times=times)


def huge(size: int = 5_000_000, *, times: int = 1) -> Fault:
    return Fault(alter=lambda said: replace(said, text="x" * size), times=times)


def duplicate_keys(*, times: int = 1) -> Fault:
    """Usage is given twice, with different values, as a careless gateway writes it."""
    return Fault(spoil=lambda body: b'{"usage": {"prompt_tokens": "many"}, ' + body[1:], times=times)


def think() -> Fault:
    return Fault(alter=lambda said: replace(said, text=f"<think>\nThe user wants {{x}}.\n</think>\n\n{said.text}"))


def unfinished_think(*, times: int = 1) -> Fault:
    return Fault(alter=lambda said: replace(said, text="<think>so long a thought that it never", calls=()), times=times)


def fenced() -> Fault:
    return _arguments(lambda text: f"```json\n{text}\n```")


def trailing_comma() -> Fault:
    return _arguments(lambda text: text.removesuffix("}") + ",}")


def prose() -> Fault:
    return _arguments(lambda text: f"Sure {{as asked}}, the arguments are {text} and nothing else.")


def broken_arguments() -> Fault:
    return _arguments(lambda text: text[: len(text) - 2])


def list_arguments() -> Fault:
    return _arguments(lambda text: f"[{text}]")


def repeated_argument() -> Fault:
    return _arguments(lambda text: text.removesuffix("}") + ', "same": 1, "same": 2}')


def surrogates() -> Fault:
    """Lone surrogates, escaped in the JSON, in the text and in the arguments."""
    fault = _arguments(lambda text: text.removesuffix("}") + ', "lone": "\\ud83d!"}')
    return replace(fault, alter=_both(fault.alter, lambda said: replace(said, text=f"\ud83d{said.text}")))


def same_ids() -> Fault:
    return Fault(alter=lambda said: replace(said, calls=tuple(replace(c, id="same") for c in said.calls)))


def _arguments(change: Callable[[str], str]) -> Fault:
    def alter(said: Said) -> Said:
        return replace(said, calls=tuple(replace(c, arguments=change(c.arguments)) for c in said.calls))

    return Fault(alter=alter)


def _both(first: Callable[[Said], Said] | None, then: Callable[[Said], Said]) -> Callable[[Said], Said]:
    return then if first is None else lambda said: then(first(said))


# --- the server ----------------------------------------------------------------------------------------------


class ChatServer:
    """The provider. Use as a context manager; `asked` holds every request in order."""

    def __init__(self, model: Model | None = None, *, key: str = "") -> None:
        self.model = model or follow()
        self.key = key
        self.asked: list[Asked] = []
        self.release = threading.Event()
        self.holding = threading.Event()
        self.errors: list[BaseException] = []
        self._plan: deque[Fault] = deque()
        self._always: Fault | None = None
        self._threads: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """Scheme, host and port: the base URL of the Anthropic format."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def env(self) -> dict[str, str]:
        """The environment for `open_chat("openai:fake", env)` or `open_chat("anthropic:fake", env)`."""
        return {
            "LUKASA_CHAT_URL": self.openai_url,
            "OPENAI_API_KEY": self.key or KEY,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self.key or KEY,
        }

    def plan(self, *faults: Fault) -> None:
        """What becomes of the next requests, in order, after those already planned."""
        with self._lock:
            self._plan.extend(replace(fault, times=1) for fault in faults for _ in range(fault.times))

    def always(self, fault: Fault | None) -> None:
        """What becomes of every request that no plan covers."""
        with self._lock:
            self._always = fault

    def take(self, asked: Asked) -> Fault:
        """Record a request, and say what becomes of it."""
        with self._lock:
            self.asked.append(asked)
            return self._plan.popleft() if self._plan else self._always or Fault()

    def threaded(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request with what the server holds of the thread that it continues; unchanged if there is none."""
        before = (body.get("thread") or {}).get("previous_message_id")
        if before is None:
            return body
        held = self._threads.get(before, {})
        return {**held, **body, "messages": [*held.get("messages", ()), *body["messages"]]}

    def keep(self, asked: Asked, said: Said) -> None:
        """Hold a conversation under the id of its last reply, as the one who asked wants it."""
        if asked.body.get("thread"):
            reply = {"role": "assistant", "content": _whole(asked, said)["content"]}
            self._threads[asked.reply_id] = {**asked.body, "messages": [*asked.body["messages"], reply]}

    def wait(self) -> None:
        self.holding.set()
        self.release.wait(PATIENCE)
        self.holding.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        if error is None and self.errors:
            raise self.errors[0]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, chat: ChatServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.chat = chat

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error; what a model function raises is kept for the test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        chat = self.server.chat
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        try:
            self._answer(chat, _asked(chat, self.path, dict(self.headers.items()), body))
        except (ConnectionError, TimeoutError):
            pass
        except BaseException as error:
            chat.errors.append(error)
            raise
        self.close_connection = True

    def _answer(self, chat: ChatServer, asked: Asked) -> None:
        fault = chat.take(asked)
        if fault.hold and not fault.after:
            chat.wait()
        if fault.reset and not fault.after:
            return self._reset()
        if fault.body is not None:
            return self._send(fault.status, fault.body, fault.content_type, fault.headers)
        if chat.key and asked.key != chat.key:
            return self._refuse(401, f"Incorrect API key provided: {asked.key}. Headers: Bearer {asked.key}")
        complaint = _complaint(asked)
        if complaint:
            return self._refuse(400, complaint)
        said = _said(chat.model(asked))
        said = fault.alter(said) if fault.alter else said
        chat.keep(asked, said)
        if (asked.stream and not fault.spoil) or fault.drip:
            return self._stream(chat, fault, _events(asked, said))
        whole = json.dumps(_whole(asked, said)).encode()
        if fault.after:
            return self._send_halves(chat, fault, whole)
        return self._send(200, fault.spoil(whole) if fault.spoil else whole)

    def _refuse(self, code: int, message: str) -> None:
        self._send(code, json.dumps({"error": {"type": "invalid_request_error", "message": message}}).encode())

    def _send(
        self, code: int, body: bytes, content_type: str = "application/json", headers: Mapping[str, str] | None = None
    ) -> None:
        self._head(code, len(body), content_type, headers or {})
        self.wfile.write(body)

    def _send_halves(self, chat: ChatServer, fault: Fault, body: bytes) -> None:
        self._head(200, len(body), "application/json", {})
        self.wfile.write(body[: len(body) // 2])
        if fault.hold:
            chat.wait()
        if fault.reset:
            return self._reset()
        if not fault.cut:
            self.wfile.write(body[len(body) // 2 :])
        return None

    def _head(self, code: int, length: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, chat: ChatServer, fault: Fault, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(int(PATIENCE * 100) if fault.drip else 0):
            if chat.release.wait(0.01):
                break
            self._chunk(b": still thinking\n\n")
        for sent, event in enumerate(events):
            if sent == fault.after and fault.hold:
                chat.wait()
            if sent == fault.after and fault.reset:
                return self._reset()
            if sent == fault.after and fault.cut:
                break
            middle = len(event) // 2  # two chunks an event, so that lines and letters arrive in halves
            self._chunk(event[:middle])
            self._chunk(event[middle:])
        return self._chunk(b"", last=True)

    def _chunk(self, data: bytes, *, last: bool = False) -> None:
        if data or last:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    def _reset(self) -> None:
        """Close with RST instead of FIN: what a crashed provider or a dropped tunnel looks like."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()  # it keeps the socket open
        self.connection.close()


# --- reading requests ----------------------------------------------------------------------------------------


def _asked(chat: ChatServer, path: str, headers: Mapping[str, str], raw_body: bytes) -> Asked:
    sent = json.loads(raw_body)
    body = chat.threaded(sent)
    lower = {name.lower(): value for name, value in headers.items()}
    path = path.removesuffix("?beta=true")  # as the SDK asks for what is not settled yet
    if path == "/v1/messages":
        tools = tuple(str(tool["name"]) for tool in body.get("tools", ()))
        return Asked(
            "anthropic", path, lower, body, tuple(_anthropic_messages(body)), tools, sent, f"msg_{len(chat.asked) + 1}"
        )
    tools = tuple(str(tool["function"]["name"]) for tool in body.get("tools", ()))
    return Asked("openai", path, lower, body, tuple(_openai_messages(body)), tools, sent)


def _openai_messages(body: Mapping[str, Any]) -> Iterator[Message]:
    for message in body["messages"]:
        calls = tuple(
            ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())
        )
        yield Message(message["role"], message["content"] or "", calls, message.get("tool_call_id", ""))


def _anthropic_messages(body: Mapping[str, Any]) -> Iterator[Message]:
    for block in _text_blocks(body.get("system") or []):
        yield Message("system", block["text"])
    for message in body["messages"]:
        blocks = _text_blocks(message["content"])
        for block in blocks:
            if block["type"] == "tool_result":
                result = "".join(part["text"] for part in _text_blocks(block["content"]))
                yield Message("tool", result, tool_call_id=block["tool_use_id"])
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        calls = tuple(ToolCall(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use")
        if text or calls:
            yield Message(message["role"], text, calls)


def _text_blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Content as blocks; a plain text stands for one."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _complaint(asked: Asked) -> str:
    """Why a real provider would refuse this request; empty if it would not."""
    if asked.path not in ("/v1/chat/completions", "/v1/messages"):
        return f"unknown path {asked.path}"
    if not asked.model or not asked.messages:
        return "model and messages are required"
    if any(not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in asked.tools):
        return "tools: name must match ^[a-zA-Z0-9_-]{1,64}$"
    return _unpaired(asked.messages) or (_anthropic_complaint(asked) if asked.style == "anthropic" else "")


def _unpaired(messages: Sequence[Message]) -> str:
    """Every call has its result before anyone speaks again, and every result its call."""
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return f"a tool result without its call: {message.tool_call_id}"
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            return f"calls without result: {sorted(waiting)}"
        ids = [call.id for call in message.tool_calls]
        if len(set(ids)) < len(ids):
            return "tool call ids must be unique"
        waiting = set(ids)
    return f"calls without result: {sorted(waiting)}" if waiting else ""


def _anthropic_complaint(asked: Asked) -> str:
    if "anthropic-version" not in asked.headers:
        return "anthropic-version: header is required"
    if not isinstance(asked.body.get("max_tokens"), int):
        return "max_tokens: Field required"
    turns = asked.body["messages"]
    if not turns or turns[0]["role"] != "user":
        return "messages: first message must use the user role"
    if any(first["role"] == then["role"] for first, then in pairwise(turns)):
        return "messages: roles must alternate"
    system = _text_blocks(asked.body.get("system") or [])
    if any(not block["text"].strip() for block in system):
        return "system: text content blocks must be non-empty"
    if sum("cache_control" in block for block in system) > 4:
        return "A maximum of 4 blocks with cache_control may be provided"
    for turn in turns:
        for block in _text_blocks(turn["content"]):
            if block["type"] == "text" and not block["text"].strip():
                return "messages: text content blocks must contain non-whitespace text"
            if block["type"] == "tool_use" and not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
                return "messages: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    return ""


# --- writing answers -----------------------------------------------------------------------------------------


def _said(answer: Reply | Said) -> Said:
    if isinstance(answer, Said):
        return answer
    calls = tuple(SaidCall(call.id, call.name, json.dumps(dict(call.arguments))) for call in answer.tool_calls)
    said = Said(answer.text, calls)
    return replace(said, usage=answer.usage) if answer.usage != Usage() else said


def _input(arguments: str) -> Any:
    """Anthropic sends arguments as a value; where the text is no JSON, a proxy passes the text on."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _finish(asked: Asked, said: Said) -> str:
    words = ("tool_calls", "stop") if asked.style == "openai" else ("tool_use", "end_turn")
    return said.finish or words[0 if said.calls else 1]


def _whole(asked: Asked, said: Said) -> dict[str, Any]:
    if asked.style == "anthropic":
        blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
        blocks += [{"type": "tool_use", "id": c.id, "name": c.name, "input": _input(c.arguments)} for c in said.calls]
        usage = {"input_tokens": said.usage.prompt, "output_tokens": said.usage.completion}
        head = {"id": asked.reply_id, "type": "message", "role": "assistant", "model": asked.model, "content": blocks}
        return {**head, "stop_reason": _finish(asked, said), "usage": usage}
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in said.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(asked, said)}
    return {"id": "chatcmpl-1", "model": asked.model, "choices": [choice], "usage": _openai_usage(said)}


def _openai_usage(said: Said) -> dict[str, int]:
    prompt, completion = said.usage.prompt, said.usage.completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _events(asked: Asked, said: Said) -> Iterator[bytes]:
    return _anthropic_events(asked, said) if asked.style == "anthropic" else _openai_events(asked, said)


def _pieces(text: str) -> list[str]:
    size = max(5, len(text) // 50)
    return [text[i : i + size] for i in range(0, len(text), size)]


def _data(value: Any, event: str = "") -> bytes:
    # As real providers do, letters go out as UTF-8, except lone surrogates, which only an escape can carry.
    text = json.dumps(value, ensure_ascii=False)
    text = re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def _openai_events(asked: Asked, said: Said) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({"model": asked.model, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield b": keep-alive\n\n" + chunk({"role": "assistant", "content": ""})
    for piece in _pieces(said.text):
        yield chunk({"content": piece})
    for index, call in enumerate(said.calls):
        head = {"index": index, "id": call.id, "type": "function"}
        yield chunk({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
        for piece in _pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(asked, said))
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        yield _data({"model": asked.model, "choices": [], "usage": _openai_usage(said)})
    yield b"data: [DONE]\n\n"


def _anthropic_events(asked: Asked, said: Said) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _data({"type": kind, **fields}, kind)

    usage = {"input_tokens": said.usage.prompt, "output_tokens": 1}
    head = {"id": asked.reply_id, "type": "message", "role": "assistant", "model": asked.model, "content": []}
    yield event("message_start", message={**head, "stop_reason": None, "usage": usage})
    index = 0
    if said.text:
        yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
        yield event("ping")
        for piece in _pieces(said.text):
            yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=index)
        index += 1
    for call in said.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _pieces(call.arguments):
            yield event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
        yield event("content_block_stop", index=index)
        index += 1
    stop = {"stop_reason": _finish(asked, said), "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": said.usage.completion})
    yield event("message_stop")
