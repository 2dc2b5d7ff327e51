"""A job that a worker runs: its journal, and its calls of a language model.

A handler is a function from a task to a result. It may run again from the start at any time, after a failure or a
crash. The journal keeps the output of each step before the job uses it, so a step that is in the journal is never done
twice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec.structs import replace

from lukasa.model.errors import ChatError, ChatMalformed, InvalidInput
from lukasa.model.events import Actor
from lukasa.model.job import Job
from lukasa.model.secrets import redact
from lukasa.model.telemetry import Level, Spending, TelemetryEvent
from lukasa.model.values import Origin, Trust
from lukasa.ports import Chat, Clock, Message, Reply, Span, Usage, no_span
from lukasa.service.call import CallContext
from lukasa.service.jobs.allowance import Allowance
from lukasa.storage.operations import Emit, JournalStep, Operation, Spend, Transaction
from lukasa.storage.port import Store

PRINCIPAL = "lukasa"
SOURCE = "worker"


def job_context(ctx: CallContext, kind: str) -> CallContext:
    """Return the context for a job of that kind: no scope key bound, and the kind of work named in the log.

    It sees all that the author sees, because maintenance is about all entries. For its own conclusions and for a
    model's words, a job writes with `acting(trust=Trust.AGENT)` or less.
    """
    origin = Origin(PRINCIPAL, SOURCE, kind, Trust.AUTHOR)
    return replace(ctx, origin=origin, agent=None, keys={}, reach=None, within=None, overseeing=True)


def whole(ctx: CallContext) -> Store:
    """Return the workspace's store for a worker, bound to no scope key, whoever asked for the work."""
    return ctx.local.within({})


def job_actor(kind: str) -> Actor:
    """Return the actor that events name for a job of that kind."""
    return Actor(PRINCIPAL, SOURCE, kind)


@dataclass(slots=True)
class Task:
    """One attempt at a job. `chat` is None if no language model is set; rules then do the work."""

    job: Job
    store: Store
    clock: Clock
    actor: Actor
    chat: Chat | None = None
    allowance: Allowance = field(default_factory=Allowance)
    span: Span = no_span
    _journal: dict[str, Any] | None = None

    # Steps

    def journaled(self, step: str) -> bool:
        return step in self._steps()

    def output(self, step: str) -> Any:
        """Return the output of a journaled step."""
        return self._steps()[step]

    def once(self, step: str, compute: Callable[[], Any], *also: Operation) -> Any:
        """Return the output of a step: from the journal, or computed now and committed together with `also`.

        The output is plain JSON, as the journal holds it. No transaction is open while it is computed.
        """
        if self.journaled(step):
            return self.output(step)
        output = compute()
        self.commit(step, output, *also)
        return self.output(step)

    def commit(self, step: str, output: Any, *operations: Operation) -> None:
        """Commit the effect of a step and its journal line together; LostClaim if another worker has the job."""
        self.store.apply(Transaction(self.actor, self.clock.now(), (*operations, self.entry(step, output))))
        self._journal = None

    def entry(self, step: str, output: Any) -> JournalStep:
        """Return the journal line of a step, for a caller that commits the effect itself and then calls `refresh`."""
        return JournalStep(self.job.id, self.job.claim, step, output)

    def refresh(self) -> None:
        self._journal = None

    def _steps(self) -> dict[str, Any]:
        if self._journal is None:
            self._journal = self.store.steps(self.job.id)
        return self._journal

    # Telemetry

    def telemetry(
        self,
        action: str,
        *,
        success: bool = True,
        level: Level = "info",
        duration_ms: float = 0.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Emit:
        """Return a telemetry event of this job as an operation, to commit with the work that it reports."""
        about = {"job": self.job.id, "attempt": self.job.attempts, **(metadata or {})}
        now = self.clock.now()
        return Emit(TelemetryEvent(now, level, SOURCE, self.job.kind, action, success, duration_ms, about))

    def tell(self, *points: Emit | Spend) -> None:
        """Commit telemetry events that belong to no step: failures and costs."""
        self.store.apply(Transaction(self.actor, self.clock.now(), points))


Handler = Callable[[Task], dict[str, Any]]


T = TypeVar("T")
TIMEOUT = 120.0
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_READINGS = 16  # how often the characters of an answer may be read in search of an object


def ask(
    task: Task,
    step: str,
    prompt: str,
    content: str,
    read: Callable[[Mapping[str, Any]], T],
    *,
    timeout: float = TIMEOUT,
) -> T:
    """Call the model of a task, and return its answer as `read` reads it.

    `read` raises InvalidInput for an answer that it cannot use. The answer is journaled, together with its cost, before
    anything else happens: no repetition of the job pays for it again.
    """
    if not task.journaled(step):
        chat = task.chat
        if chat is None:
            raise InvalidInput("no language model is set", fix="set LUKASA_CHAT, or run the job by rules")
        task.allowance.check(chat)
        began, bill = time.monotonic(), _Bill()
        try:
            with task.span("model.answer", {"lukasa.model": chat.name, "lukasa.step": step}):
                data = _answer(chat, prompt, content, read, timeout, bill)
        except ChatError as error:
            task.allowance.failed(chat, error)
            about: dict[str, Any] = {"step": step, "error": error.code, **bill.about(chat)}
            took = (time.monotonic() - began) * 1000
            failed = task.telemetry("model.failed", success=False, level="error", duration_ms=took, metadata=about)
            task.tell(*bill.spending(task, chat), failed)
            raise
        task.allowance.succeeded(chat)
        took = (time.monotonic() - began) * 1000
        answered = task.telemetry("model.answered", duration_ms=took, metadata={"step": step, **bill.about(chat)})
        task.commit(step, data, *bill.spending(task, chat), answered)
    return read(task.output(step))


@dataclass(slots=True)
class _Bill:
    """The calls and tokens used so far, counted also if the answer is unusable."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def add(self, usage: Usage) -> None:
        self.calls += 1
        self.usage = Usage(self.usage.prompt + usage.prompt, self.usage.completion + usage.completion)

    def about(self, chat: Chat) -> dict[str, Any]:
        tokens = {"prompt_tokens": self.usage.prompt, "completion_tokens": self.usage.completion}
        return {"model": chat.name, "calls": self.calls, **tokens}

    def spending(self, task: Task, chat: Chat) -> list[Spend]:
        if not self.calls:
            return []
        day, cost = f"{task.clock.now():%Y-%m-%d}", task.allowance.cost(chat, self.usage)
        return [Spend(Spending(day, chat.name, self.calls, self.usage.prompt, self.usage.completion, cost))]


def _answer(
    chat: Chat,
    prompt: str,
    content: str,
    read: Callable[[Mapping[str, Any]], object],
    timeout: float,
    bill: _Bill,
) -> Mapping[str, Any]:
    """Call the model, and once more if its answer is unusable. Both calls end within `timeout`.

    No secret reaches the model: it may see a sensitive entry beside others, with a mark in place of the secret.
    """
    ends = time.monotonic() + timeout
    asked = [Message("system", prompt), Message("user", redact(content)[0])]
    first = chat.reply(asked, timeout=timeout)
    bill.add(first.usage)
    try:
        return _usable(first, read)
    except InvalidInput as fault:
        said = Message("assistant", first.text.strip()[:20_000] or "(nothing)")
        asked += [said, Message("user", f"That cannot be used: {fault.message}. Answer with the JSON object alone.")]
    second = chat.reply(asked, timeout=max(1.0, ends - time.monotonic()))
    bill.add(second.usage)
    try:
        return _usable(second, read)
    except InvalidInput as fault:
        raise ChatMalformed(
            f"{chat.name} gave no usable answer: {fault.message}", fix="try again later, or with another model"
        ) from fault


def _usable(reply: Reply, read: Callable[[Mapping[str, Any]], object]) -> Mapping[str, Any]:
    data = json_object(reply.whole_text())
    read(data)
    return data


def json_object(text: str) -> Mapping[str, Any]:
    """Return the JSON object in a reply, ignoring thoughts, a code fence or prose around it."""
    text, work = _without_thoughts(text), 0
    decoder = json.JSONDecoder(object_pairs_hook=_each_key_once)
    for match in re.finditer(r"\{", text):
        try:
            data, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            end = error.pos if isinstance(error, json.JSONDecodeError) else len(text)
            work += end - match.start()
            if work > _READINGS * len(text):
                break
            continue
        if isinstance(data, dict):
            return _encodable(data)
    raise InvalidInput("the answer is not a JSON object")


def _without_thoughts(text: str) -> str:
    """Remove the thoughts between tags, in one pass. A thought without a closing tag is kept."""
    kept, at, start = [], 0, -1
    for tag in _THINKING.finditer(text):
        if not tag[1] and start < 0:
            start = tag.start()
        elif tag[1] and start >= 0:
            kept.append(text[at:start])
            at, start = tag.end(), -1
    return "".join([*kept, text[at:]])


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise InvalidInput("an object of the answer has the same key twice")
    return data


def _encodable(data: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (UnicodeEncodeError, ValueError):
        raise InvalidInput("the answer holds text or numbers that JSON cannot store") from None
    return data
