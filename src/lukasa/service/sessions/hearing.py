"""Keep what people say while they say it, for a host whose sessions have no end, such as an agent framework.

A message becomes its facts, and what it states beside them becomes an episode: an episode is found, and no later text
replaces it. Questions, requests to forget and messages that the person does not want kept become nothing. Only the
user's words are kept: the agent's words may be memory read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lukasa import model
from lukasa.model.text import terms
from lukasa.model.values import Kind
from lukasa.observe.sentences import sentences
from lukasa.ports import Embedder
from lukasa.service.entries.put import Memo, Written
from lukasa.service.sessions.distill import Distil, Fact, Turn, by_rules_with
from lukasa.service.sessions.session import RefusedText, durable_tier, known, write_each, write_facts
from lukasa.service.workspace import Workspace

SPEAKER = "user"


class Heard(Struct, frozen=True):
    """The result of hearing messages: what was written, and the texts that the write path refused."""

    written: tuple[Written, ...] = ()
    refused: tuple[RefusedText, ...] = ()


def hear(world: Workspace, said: Sequence[Turn], *, distil: Distil | None = None, speaker: str = SPEAKER) -> Heard:
    """Keep what the user's messages say. A message that is heard again changes nothing.

    Without `distil`, rules find the facts. `speaker` is the source of the episodes: who it is that speaks.
    """
    heard = [turn for turn in said if turn.role == "user" and turn.text.strip()]
    if not heard:
        return Heard()
    embedder, now = world.ctx.embedder, world.ctx.now
    since = min((turn.at or now for turn in heard), default=now)
    facts = (distil or by_rules_with(embedder))(heard).facts
    refused: list[RefusedText] = []
    written = list(write_facts(world, since, facts, refused))
    tier = durable_tier(world)
    episodes = [memo for turn in heard if (memo := _episode(world, turn, facts, embedder, speaker, now)) is not None]
    if episodes:
        written += write_each(world, tier, episodes, refused)
    return Heard(tuple(written), tuple(refused))


def _episode(
    world: Workspace, turn: Turn, facts: Sequence[Fact], embedder: Embedder | None, speaker: str, now: datetime
) -> Memo | None:
    """Return what a message states beside the facts, if it states something that memory does not hold."""
    text = beside(turn.text, facts, embedder)
    if not text or known(world, turn.at or now, text):
        return None
    return Memo(text, kind=Kind.EPISODIC, source=speaker, valid_at=turn.at, observed=True)


def beside(text: str, facts: Sequence[Fact], embedder: Embedder | None = None) -> str:
    """Return the sentences of a message that neither ask nor are facts already."""
    intent = model.intents.understand(text, embedder)
    if intent.declined or intent.forget is not None or intent.asked is not None:
        return ""
    found = [set(terms(fact.text)) for fact in facts]
    spans = [text[span.start : span.end].strip() for span in sentences(text)]
    stated = [one for one in spans if not one.endswith(("?", "？"))]
    return " ".join(one for one in stated if not any(_covers(words, one) for words in found))


def _covers(fact: set[str], sentence: str) -> bool:
    words = set(terms(sentence))
    return bool(words) and (fact <= words or words <= fact)
