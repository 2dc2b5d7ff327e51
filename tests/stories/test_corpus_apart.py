"""Memory and the corpus are apart: whatever is in them and whoever asks, neither search brings the other's text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lukasa import Lukasa, Workspace
from lukasa.langgraph import LukasaStore
from lukasa.model.grant import Capability
from lukasa.ports import ToolCall
from lukasa.service.admin.access import Credential
from lukasa.surfaces.api.table import BY_NAME
from lukasa.surfaces.api.toolbox import Toolbox
from lukasa.surfaces.api.verb import perform
from tests.fakes import FakeEmbedder

WORDS = "amber birch cedar delta ember fjord grove haven isle juniper kelp larch".split()
MEMORY, CORPUS = "inmemory", "incorpus"
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
several = st.lists(sentences, min_size=1, max_size=6)


@pytest.fixture
def filled() -> Iterator[Callable[[Sequence[str], Sequence[str]], tuple[Lukasa, Workspace]]]:
    opened: list[Lukasa] = []

    def fill(told: Sequence[str], documents: Sequence[str]) -> tuple[Lukasa, Workspace]:
        memory = Lukasa.open(in_memory=True, embedder=FakeEmbedder())
        opened.append(memory)
        world = memory.workspace("house")
        store = LukasaStore(world, index={"dims": 64, "embed": lambda texts: [[1.0] * 64 for _ in texts]})
        for number, text in enumerate(told):
            world.put("workspace", f"{MEMORY} {text} {number}")
            store.put(("notes",), str(number), {"text": f"{MEMORY} {text}"})
        for number, text in enumerate(documents):
            body = f"# {text}\n\n{CORPUS} {text} {number}\n\n## {text}\n\n{CORPUS} {text}\n"
            world.add_upload(f"{number}.md", body.encode(), tags=["amber"])
        world.backfill()
        return memory, world

    yield fill
    for memory in opened:
        memory.close()


def reader(memory: Lukasa) -> Credential:
    made = memory.access.create("reader", workspaces=["house"], can=(Capability.READ,), expires=timedelta(hours=1))
    return memory.access.admit(made.token, surface="mcp", transport="stdio")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=several, documents=several, asked=sentences)
def test_neither_search_brings_the_others_text(
    filled: Callable[[Sequence[str], Sequence[str]], tuple[Lukasa, Workspace]],
    told: list[str],
    documents: list[str],
    asked: str,
) -> None:
    """K4: read, context, lists, LangGraph's store and the tools of every surface give memory; the rest, documents."""
    memory, world = filled(told, documents)
    credential = reader(memory)
    tools = Toolbox(world.acting(agent="helper"))
    store = LukasaStore(world, index={"dims": 64, "embed": lambda texts: [[1.0] * 64 for _ in texts]})

    def verb(name: str, **fields: object) -> str:
        given = BY_NAME[name].input.model_validate(fields)
        return perform(BY_NAME[name], memory.access, credential, "house", given).model_dump_json()

    def tool(name: str, **fields: object) -> str:
        return tools.call(ToolCall("1", name, fields)).text

    of_memory = [
        str([hit.entry.content for hit in world.read(asked).hits]),
        str([hit.entry.content for hit in world.read(f"{CORPUS} {asked}", limit=50).hits]),
        str(world.context(asked)),
        str([entry.content for entry in world.entries("workspace")]),
        str(store.search(("notes",), query=asked, limit=50)),
        str(store.search((), limit=50)),
        verb("memory_read", query=asked, limit=50),
        verb("memory_context", query=asked),
        verb("memory_list"),
        tool("memory_read", query=asked),
    ]
    of_documents = [
        str([(hit.text, hit.section) for hit in world.search_corpus(asked, limit=50)]),
        str([hit.text for hit in world.search_corpus(f"{MEMORY} {asked}", limit=50, tags=["amber"])]),
        str(world.read_document("0.md")),
        json.dumps(json.loads(verb("corpus_search", query=asked, limit=50))["hits"]),
        verb("corpus_read", document="0.md"),
        tool("corpus_search", query=asked),
        tool("corpus_read", document="0.md"),
    ]
    assert MEMORY in of_memory[3]
    assert MEMORY in of_memory[4]
    assert [one for one in of_memory if CORPUS in one.replace(f"{CORPUS} {asked}", "")] == []
    assert [one for one in of_documents if MEMORY in one] == []
    if set(asked.split()) & {word for text in documents for word in text.split()}:
        assert CORPUS in of_documents[0]
