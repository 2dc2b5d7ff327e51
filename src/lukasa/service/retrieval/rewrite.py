"""Rewrite and rerank: let a language model rephrase the question of a read, and order its hits.

Each call has two seconds. Without an answer, the question and the order stay as they are, and a note says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from lukasa.model.errors import ChatError, InvalidInput
from lukasa.model.secrets import redact_all
from lukasa.model.telemetry import Spending, TelemetryEvent
from lukasa.model.text import STOP_WORDS, words
from lukasa.model.values import Trust
from lukasa.ports import Chat, Message, Reply
from lukasa.read.excerpt import excerpt
from lukasa.read.question import query_terms
from lukasa.read.rank import Hit
from lukasa.service.call import CallContext
from lukasa.service.jobs.task import json_object
from lukasa.spec.prompts import prompt
from lukasa.storage.operations import Emit, Spend

TIMEOUT = 2.0
LONGEST = 400
MOST_RANKED, LONGEST_NOTE = 15, 500  # hits that a model orders, and characters of each that it sees
FEWEST_WORDS = 2  # content words; a shorter question is a name or a key, and is searched as given


def rewritten(ctx: CallContext, query: str, notes: list[str]) -> str:
    """Return the question to search with."""
    if sum(word not in STOP_WORDS for word in words(query)) < FEWEST_WORDS:
        return query
    said = _asked(ctx, "rewrite", {"question": query[:2000]}, notes, "the question was asked as it is")
    text = said.get("query") if said is not None else None
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        return query
    better = " ".join(text.split())
    if better == query:
        return query
    notes.append(f"asked as: {better}")
    return better


def reranked(ctx: CallContext, query: str, hits: Sequence[Hit], notes: list[str]) -> list[Hit]:
    """Return the hits in the order of a model. Hits that it does not name follow in their old order; none is lost."""
    if ctx.spec.retrieval.rerank != "model" or len(hits) < 2 or not query.strip():
        return list(hits)
    top = hits[:MOST_RANKED]
    sought = query_terms(query)
    shown = [excerpt(hit.content, sought, LONGEST_NOTE).of(hit.content) for hit in top]
    listed = [{"number": number, "note": note} for number, note in enumerate(shown, 1)]
    given = {"question": query[:2000], "notes": listed}
    said = _asked(ctx, "rerank", given, notes, "the order was not looked at")
    order = said.get("order") if said is not None else None
    numbers = order if isinstance(order, list) else []
    positions = [n - 1 for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= len(top)]
    first = [top[position] for position in dict.fromkeys(positions)]
    return [*first, *(hit for hit in hits if hit not in first)]


def _tell(ctx: CallContext, chat: Chat, name: str, reply: Reply, took: float) -> None:
    """Record the cost of a call, as for any other call."""
    spent = Spending(f"{ctx.now:%Y-%m-%d}", chat.name, 1, reply.usage.prompt, reply.usage.completion)
    point = TelemetryEvent(ctx.now, "info", "read", name, "model.answered", True, took, {"model": chat.name})
    ctx.apply(ctx.local, Spend(spent), Emit(point))


def _asked(ctx: CallContext, name: str, given: dict[str, Any], notes: list[str], otherwise: str) -> Any:
    try:
        chat = ctx.chat() if ctx.chat is not None and ctx.origin.trust >= Trust.AGENT else None
        if chat is None or chat.name == "offline":
            return None
        asked = [
            Message("system", prompt(name, ctx.prompts)),
            Message("user", json.dumps(redact_all(given), ensure_ascii=False)),
        ]
        began = time.monotonic()
        reply = chat.reply(asked, timeout=TIMEOUT)
        _tell(ctx, chat, name, reply, (time.monotonic() - began) * 1000)
        return json_object(reply.whole_text())
    except (ChatError, InvalidInput) as error:
        notes.append(f"{otherwise}: {error.message}")
        return None
