"""The corpus: documents to look things up in, apart from memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa import Lukasa, Workspace
from lukasa.model.corpus import ParsedDocument, Passage
from lukasa.model.errors import NotFound, ReadOnlyForAgents, Refused
from lukasa.storage.operations import SaveDocument
from tests.fakes import FakeEmbedder
from tests.helpers.making import FixedClock
from tests.helpers.stores import document

GUIDE = """# Deploys

A deploy of the harbour system needs two people, and one of them watches the gauges while the other turns the crane.

On Friday nobody deploys, because the crane stands still until Monday morning.

The lantern at the gate burns green while a deploy is under way, and red when it has failed."""


def paragraphs(parsed: ParsedDocument) -> list[Passage]:
    """Cut by blank lines: a splitter for tests."""
    texts = [text for part in parsed.parts for text in part.text.split("\n\n")]
    return [Passage("", 0, n, text, (parsed.title,), page=n + 1) for n, text in enumerate(texts)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Workspace]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder(), clock=FixedClock()) as memory:
        made = memory.workspace("novel")
        yield Workspace(replace(made.ctx, splitter=paragraphs))


def test_a_hit_says_where_it_is_from_and_what_it_is_worth(world: Workspace) -> None:
    """K4: document, version, section, page, the axes as they are now, and a link that an entry can carry."""
    world.save_document("deploys", GUIDE, title="How we deploy", origin="ops", standing="endorsed", tags=["handbook"])
    (hit, *_) = world.search_corpus("what does the lantern at the gate mean?")
    assert hit.text.startswith("The lantern at the gate burns green")
    assert (hit.document, hit.version, hit.section, hit.page) == ("deploys", 1, "Deploys", 3)
    assert (hit.title, hit.origin, hit.standing, hit.place) == (
        "How we deploy",
        "ops",
        "endorsed",
        "Deploys, p. 3",
    )
    assert "handbook" in hit.tags
    written = world.put("workspace", "Green at the gate means go on waiting", links=[hit.link])
    (rests,) = world.grounds(written.id).provenance
    assert (rests.source, rests.status) == ("deploys", "current")
    world.save_document("deploys", GUIDE.replace("green", "blue"))
    (rests,) = world.grounds(written.id).provenance
    assert rests.status == "changed"
    assert "blue" in world.search_corpus("lantern gate")[0].text
    world.remove_document("deploys")
    assert world.search_corpus("lantern gate") == []
    assert [head.version for head in world.document_history("deploys")] == [1, 2, 3]
    assert "green" in world.get_document("deploys", 1).body
    with pytest.raises(NotFound):
        world.get_document("deploys", 7)


def test_memory_and_corpus_are_searched_apart(world: Workspace) -> None:
    """K4: a read never brings a passage, and a search of the corpus never an entry."""
    world.save_document("deploys", GUIDE)
    world.put("workspace", "The crane on the pier is painted yellow")
    assert [hit.entry.content for hit in world.read("crane").hits] == ["The crane on the pier is painted yellow"]
    assert {hit.document for hit in world.search_corpus("yellow crane pier")} == {"deploys"}
    assert "gauges" not in str(world.context("who watches the gauges of the crane?"))


def test_a_copy_of_a_passage_is_refused_wherever_it_is_in_a_long_document(world: Workspace) -> None:
    """M8: the guard finds the passage by its words, and compares the text with it and those around it."""
    filler = "\n\n".join(f"Paragraph {n} is about the ropes of ship number {n}." for n in range(300))
    world.save_document("deploys", f"{filler}\n\n{GUIDE}\n\n{filler}")
    copied = "On Friday nobody deploys, because the crane stands still until Monday morning."
    for text in (copied, GUIDE):
        held = world.put("workspace", text)
        assert (held.outcome, "from deploys" in str(held.ledger)) == ("held", True)
    assert world.put("workspace", "Deploys on Fridays end badly").outcome == "stored"


def test_documents_of_an_earlier_version_are_split_by_the_first_search(world: Workspace) -> None:
    """K4: a document without passages is guarded whole, and split once somebody searches."""
    world.ctx.apply(world.ctx.local, SaveDocument(document("old", GUIDE), 0))
    copied = "On Friday nobody deploys, because the crane stands still until Monday morning."
    assert world.put("workspace", copied).outcome == "held"
    assert [hit.document for hit in world.search_corpus("lantern at the gate", limit=1)] == ["old"]
    assert world.ctx.local.unsplit_documents(9) == []


def test_only_the_author_writes_documents(world: Workspace) -> None:
    """K5: nothing that an agent does puts a text into the corpus by itself."""
    agent = world.acting(agent="scribe")
    with pytest.raises((Refused, ReadOnlyForAgents)):
        agent.save_document("x", "y")
    with pytest.raises((Refused, ReadOnlyForAgents)):
        agent.remove_document("x")
    world.put("workspace", "The crane lifts forty tonnes")
    assert world.documents() == []
