"""Documents with their passages, sources and watches: found by words and by vectors, alike in every store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from lukasa.model.corpus import DocumentSource, FoundPassage, Passage, PassageFilters, Watch
from lukasa.model.entry import SourceLink
from lukasa.model.errors import Conflict, NotFound
from lukasa.model.text import terms
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import (
    DropWatch,
    Embedding,
    LinkAction,
    Operation,
    SaveDocument,
    SaveDocumentSource,
    SavePassageEmbedding,
    SavePassages,
    SaveWatch,
)
from lukasa.storage.port import Store
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.stores import MODEL, NOW, OTHER_MODEL, Cosine, commit, document, entry, later, put, vector_of

KEYED = "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEYX"


def passages(*texts: str, tags: Sequence[str] = ()) -> tuple[Passage, ...]:
    return tuple(Passage("", 0, 0, text, tags=tuple(tags)) for text in texts)


def save(id: str, *texts: str, expect: int = 0, collection: str = "documents", tags: Sequence[str] = ()) -> Operation:
    kept = document(id, "\n".join(texts), collection=collection)
    return SaveDocument(kept, expect, passages(*texts, tags=tags))


def source(id: str, location: str, digest: str = "d1") -> DocumentSource:
    return DocumentSource(id, location, "text/markdown", digest, NOW, notes=("a page had no text",))


def embed(id: str, number: int, text: str, version: int = 1) -> SavePassageEmbedding:
    return SavePassageEmbedding(id, version, number, Embedding(MODEL, vector_of(text)))


def places(found: Sequence[FoundPassage]) -> list[str]:
    return [f"{one.passage.document}#{one.passage.number}" for one in found]


def test_a_version_comes_with_its_passages(store: Store) -> None:
    """K4: passages are numbered and named by the store; a new version replaces them, and a removal takes them away."""
    commit(store, save("tea", "Boil the water.", "Pour it over the leaves."))
    assert [(p.document, p.version, p.number, p.text) for p in store.passages("tea")] == [
        ("tea", 1, 0, "Boil the water."),
        ("tea", 1, 1, "Pour it over the leaves."),
    ]
    assert [p.number for p in store.passages("tea", start=1)] == [1]
    assert store.passage_count("tea") == 2
    commit(store, save("tea", "Boil fresh water.", expect=1))
    assert [(p.version, p.text) for p in store.passages("tea")] == [(2, "Boil fresh water.")]
    assert places(store.find_passages(["leav"], 9)) == []
    commit(store, SaveDocument(document("tea", "", removed=True), 2, passages("left over"), source("tea", "/tea.md")))
    assert (store.passages("tea"), store.find_passages(terms("boil"), 9)) == ([], [])
    assert [(head.version, head.removed) for head in store.document_history("tea")] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert len([event for event in store.events() if event.action.startswith("document.")]) == 3


def test_documents_are_listed_by_pages_without_their_texts(store: Store) -> None:
    """H1: a list reads no body, and a removed document is in none."""
    ids = [f"d{n}" for n in range(5)]
    commit(store, *(save(id, "text", collection="books" if id > "d2" else "notes") for id in ids))
    commit(store, SaveDocument(document("d0", "", removed=True), 1))
    assert [head.id for head in store.list_documents(limit=2)] == ["d1", "d2"]
    assert [head.id for head in store.list_documents(after="d2")] == ["d3", "d4"]
    assert [head.id for head in store.list_documents(collection="books")] == ["d3", "d4"]
    assert store.collections() == {"books": 2, "notes": 2}
    assert {id: head.removed for id, head in store.document_heads(["d0", "d3", "nobody"]).items()} == {
        "d0": True,
        "d3": False,
    }
    old = store.document_version("d0", 1)
    assert old is not None
    assert (old.body, store.document_version("d0", 9)) == ("text", None)


def test_passages_are_found_by_words_and_headings(store: Store) -> None:
    """K4: rare words count more, a heading counts as well, and filters come before the limit."""
    commit(store, save("a", "the crane lifts forty tonnes", "the harbour has a crane", collection="books"))
    headed = Passage("", 0, 0, "It is closed at night.", ("Harbour", "Gate"), page=4, tags=("rules",))
    commit(store, SaveDocument(document("b", "x"), 0, (headed, *passages("a crane and a crane", tags=("rules", "x")))))
    assert places(store.find_passages(["tonn", "crane"], 9))[0] == "a#0"
    (gate,) = store.find_passages(["gate"], 9)
    assert (gate.passage.headings, gate.passage.page, gate.passage.line) == (("Harbour", "Gate"), 4, None)
    asked = ["crane", "harbour"]
    every = places(store.find_passages(asked, 9))
    assert sorted(every) == ["a#0", "a#1", "b#0", "b#1"]
    for filters, kept in (
        (PassageFilters(collections=("books",)), {"a#0", "a#1"}),
        (PassageFilters(documents=("b", "nobody")), {"b#0", "b#1"}),
        (PassageFilters(tags=("rules",)), {"b#0", "b#1"}),
        (PassageFilters(tags=("rules", "x")), {"b#1"}),
        (PassageFilters(("books",), ("rules",)), set()),
    ):
        found = places(store.find_passages(asked, 9, filters))
        assert found == [place for place in every if place in kept]
        assert places(store.find_passages(asked, 1, filters)) == found[:1]
    assert store.find_passages([], 9) == store.find_passages(["nowhere"], 9) == store.find_passages(asked, 0) == []


def test_passages_are_found_by_vectors(store: Store) -> None:
    """K4: the nearest first, of one model alone; a vector of a text that has moved on is let go."""
    texts = ["a harbour", "a crane", "a lantern"]
    commit(store, save("a", *texts[:2], collection="books"), save("b", texts[2], tags=("light",)))
    wanting = store.unembedded_passages(MODEL, 9)
    assert [(one.document, one.version, one.number, one.text) for one in wanting] == [
        ("a", 1, 0, "a harbour"),
        ("a", 1, 1, "a crane"),
        ("b", 1, 0, "a lantern"),
    ]
    commit(store, *(embed(one.document, one.number, one.text) for one in wanting))
    assert store.unembedded_passages(MODEL, 9) == []
    assert len(store.unembedded_passages(OTHER_MODEL, 2)) == 2
    found = store.nearest_passages(MODEL, vector_of("a crane"), 9)
    assert (places(found)[0], Cosine(found[0].score), len(found)) == ("a#1", 1.0, 3)
    assert store.nearest_passages(OTHER_MODEL, vector_of("a crane"), 9) == []
    assert places(store.nearest_passages(MODEL, vector_of("a crane"), 9, PassageFilters(tags=("light",)))) == ["b#0"]
    assert len(store.nearest_passages(MODEL, vector_of("x"), 9, PassageFilters(("books",)))) == 2
    assert len(store.nearest_passages(MODEL, vector_of("x"), 1)) == 1
    commit(store, save("a", "a rope", expect=1))
    commit(store, embed("a", 0, "a harbour"))
    assert places(store.nearest_passages(MODEL, vector_of("a crane"), 9)) == ["b#0"]
    commit(store, embed("a", 0, "a rope", version=2), embed("nobody", 0, "a rope"))
    assert places(store.nearest_passages(MODEL, vector_of("a rope"), 1)) == ["a#0"]
    commit(store, embed("a", 0, "a crane", version=2))
    again = store.nearest_passages(MODEL, vector_of("a crane"), 1)
    assert (places(again), Cosine(again[0].score)) == (["a#0"], 1.0)


def test_a_document_without_passages_is_noted_until_it_is_split(store: Store) -> None:
    """K4: what an earlier version stored is split later, unless it has moved on; nothing of it is in the log."""
    commit(store, SaveDocument(document("b", "Two."), 0), SaveDocument(document("a", "One."), 0), save("c", "Three."))
    assert store.unsplit_documents(9) == ["a", "b"]
    assert store.unsplit_documents(1) == ["a"]
    logged = store.head()
    commit(store, SavePassages("a", 1, passages("One.")), SavePassages("b", 7, passages("Other.")))
    assert (store.head(), store.unsplit_documents(9)) == (logged, ["b"])
    assert [p.text for p in store.passages("a")] == ["One."]
    commit(store, SaveDocument(document("b", "", removed=True), 1))
    assert store.unsplit_documents(9) == []


def test_sources_are_found_by_place(store: Store) -> None:
    """K4: a source goes with its version, is found by its folder, and can be noted again without a new version."""
    for id, location in (
        ("a", "/books/a.md"),
        ("b", "/books/deep/b.md"),
        ("c", "/books-too/c.md"),
        ("d", "https://x/d"),
    ):
        commit(store, SaveDocument(document(id), 0, passages(id), source("", location)))
    assert [one.document for one in store.sources_below("/books")] == ["a", "b"]
    assert [one.document for one in store.sources_below("/books/")] == ["a", "b"]
    assert [one.document for one in store.sources_at("https://x/d")] == ["d"]
    assert store.document_sources(["a", "nobody"]) == {"a": source("a", "/books/a.md")}
    logged = store.head()
    commit(store, SaveDocumentSource(source("a", "/books/a.md", "d2")))
    assert (store.head(), store.document_sources(["a"])["a"].digest) == (logged, "d2")
    commit(store, save("a", "written by hand", expect=1))
    assert store.document_sources(["a"]) == {}
    with pytest.raises(NotFound):
        commit(store, SaveDocumentSource(source("nobody", "/x")))


def test_watches_are_kept_by_version(store: Store) -> None:
    """K4: only its beginning and its end are events; a look at it that another has overtaken is a conflict."""
    watch = Watch("w1", "folder", "/books", "documents", NOW, later(60))
    commit(store, SaveWatch(watch, 0))
    seen = replace(watch, checked_at=later(60), due_at=later(120), seen=("x", "y"), error="gone", failures=2)
    commit(store, SaveWatch(seen, 1))
    assert store.watches() == [replace(seen, version=2)]
    with pytest.raises(Conflict):
        commit(store, SaveWatch(seen, 1))
    commit(store, DropWatch("w1", 2))
    assert store.watches() == []
    assert [event.action for event in store.events()] == ["watch.begun", "watch.ended"]


def test_a_text_that_was_read_keeps_no_secret(store: Store) -> None:
    """W11: a file's text and every passage are redacted; the owner's own document keeps its text."""
    commit(store, SaveDocument(document("own", KEYED), 0, passages(KEYED)))
    commit(store, SaveDocument(document("read", KEYED), 0, passages(KEYED), source("", "/env")))
    assert store.documents(["own"])["own"].body == KEYED
    assert "wJalr" not in store.documents(["read"])["read"].body
    kept = [*store.passages("own"), *store.passages("read")]
    assert len(kept) == 2
    assert not [one for one in kept if "wJalr" in one.text]
    assert store.find_passages(terms("wJalrXUtnFEMI"), 9) == []


def test_linked_documents_are_known(store: Store) -> None:
    """M9: what is linked is asked for by its links, not by reading all documents."""
    commit(store, save("a", "x"), save("b", "y"))
    one = entry()
    linked = replace(one, links=(SourceLink("b", 1, "#0"),))
    commit(store, put(linked), LinkAction("act", "", (linked.id,)))
    assert store.linked_documents() == ["b"]


def test_all_stores_find_the_same_in_the_same_order(store: Store) -> None:
    """K4: of a thousand passages, each store gives the order and the scores of the reference."""
    reference = MemoryStore()
    words = "harbour crane lantern attic mooring hinge cellar gull anchor rope keel tide".split()
    for n in range(40):
        texts = [" ".join(words[(n * i + i * i + k) % 12] for k in range(3 + (n + i) % 9)) for i in range(25)]
        operation = save(f"d{n:02}", *texts, collection=f"c{n % 3}", tags=(words[n % 12],))
        commit(reference, operation)
        commit(store, operation)
    for asked in (["crane"], ["rope", "keel", "tide"], ["gull", "nowhere"], words):
        for filters in (PassageFilters(), PassageFilters(("c1",)), PassageFilters(tags=("rope",))):
            assert store.find_passages(asked, 30, filters) == reference.find_passages(asked, 30, filters)


def test_a_rebuild_mends_what_follows_from_documents(tmp_path: Path) -> None:
    """T11: a passage that was altered is found by a check, and its document is split again after a rebuild."""
    store = SqliteStore(tmp_path / "store", role="workspace", create=True)
    commit(store, save("a", "a harbour", "a crane"), save("b", "a lantern"), embed("a", 0, "a harbour"))
    with store._connections.writing() as db:
        db.execute("UPDATE passages SET text = 'a hammer' WHERE document = 'a' AND number = 1")
        db.execute("INSERT INTO passage_fts (passage_fts) VALUES ('delete-all')")
        db.execute("UPDATE passage_vectors SET vector = zeroblob(16)")
    assert {(one.what, one.derived) for one in store.check()} == {("passage", True), ("index", True), ("vector", True)}
    assert places(store.find_passages(["hammer"], 9)) == []
    store.rebuild()
    assert store.check() == []
    assert (store.unsplit_documents(9), places(store.find_passages(["lantern"], 9))) == (["a"], ["b#0"])
    store.close()
