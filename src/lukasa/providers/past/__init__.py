"""Bring a past: the formats of other programs' memories, in the order in which a path is compared with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

from lukasa.model.errors import UnreadablePast
from lukasa.ports import Past
from lukasa.providers.past import (
    agent_files,
    chat_exports,
    episodes,
    harnesses,
    knowledge_graph,
    langgraph_stores,
    mem0_stores,
    notes,
    rules_files,
)
from lukasa.providers.past.bundle import Bundle


class Format(NamedTuple):
    """A format: its name, what a person calls it, whether a path has it, and what it holds."""

    name: str
    title: str
    fits: Callable[[Bundle], bool]
    read: Callable[[Bundle], Iterator[Past]]


OWN = "lukasa: an export of Lukasa, by `lukasa export`"
FORMATS = (
    Format(harnesses.CLAUDE, harnesses.CLAUDE_TITLE, harnesses.fits_claude, harnesses.read_claude),
    Format(harnesses.CODEX, harnesses.CODEX_TITLE, harnesses.fits_codex, harnesses.read_codex),
    Format(chat_exports.CHATGPT, chat_exports.CHATGPT_TITLE, chat_exports.fits_chatgpt, chat_exports.read_chatgpt),
    Format(
        chat_exports.CLAUDE_AI, chat_exports.CLAUDE_AI_TITLE, chat_exports.fits_claude_ai, chat_exports.read_claude_ai
    ),
    Format(knowledge_graph.NAME, knowledge_graph.TITLE, knowledge_graph.fits, knowledge_graph.read),
    Format(langgraph_stores.NAME, langgraph_stores.TITLE, langgraph_stores.fits, langgraph_stores.read),
    Format(agent_files.NAME, agent_files.TITLE, agent_files.fits, agent_files.read),
    Format(mem0_stores.NAME, mem0_stores.TITLE, mem0_stores.fits, mem0_stores.read),
    Format(episodes.NAME, episodes.TITLE, episodes.fits, episodes.read),
    Format(rules_files.MEMORY_NAME, rules_files.MEMORY_TITLE, rules_files.fits_memory, rules_files.read_memory),
    Format(notes.BASIC, notes.BASIC_TITLE, notes.fits_basic, notes.read_basic),
    Format(notes.OBSIDIAN, notes.OBSIDIAN_TITLE, notes.fits_obsidian, notes.read_obsidian),
    Format(rules_files.NAME, rules_files.TITLE, rules_files.fits, rules_files.read),
    Format(harnesses.SESSION, harnesses.SESSION_TITLE, harnesses.fits_session, harnesses.read_session),
    Format(notes.MARKDOWN, notes.MARKDOWN_TITLE, notes.fits_markdown, notes.read_markdown),
)


class PastFiles:
    """Reads what other programs remember, from files on this machine."""

    def recognise(self, path: str, called: str = "") -> str:
        with closing(Bundle(path, called)) as bundle:
            return _format(bundle, "").name

    def read(self, path: str, format: str = "", called: str = "") -> Iterator[Past]:
        with closing(Bundle(path, called)) as bundle:
            yield from _format(bundle, format).read(bundle)


def _format(bundle: Bundle, named: str) -> Format:
    understood = "; ".join((OWN, *(f"{one.name}: {one.title}" for one in FORMATS)))
    if named:
        found = next((one for one in FORMATS if one.name == named), None)
        if found is None:
            raise UnreadablePast(f"there is no format {named[:60]!r}", fix=f"use one of: {understood}")
        return found
    found = next((one for one in FORMATS if one.fits(bundle)), None)
    if found is None:
        raise UnreadablePast(
            f"{bundle.shown!r} is in no format that is understood", fix=f"an import understands: {understood}"
        )
    return found
