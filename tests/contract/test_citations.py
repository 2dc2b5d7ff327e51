"""What entries cite, and what checks of it found."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.citation import AMISS, Citation, CitationCheck, CitationVerdict, Cited
from lukasa.model.errors import Conflict, NotFound
from lukasa.model.ids import new_id
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.storage.operations import DropEntry, SaveChecks, SaveCitations, Scrub
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, WORK, commit, entry, later, put


def cited(id: str, target: str = "src/mill.py", **more: object) -> Citation:
    return Citation(new_id(), id, Cited.FILE, target, NOW, hash="aa" * 16, project="git:host/mill", **more)  # type: ignore[arg-type]


def test_citations_are_kept_in_order_and_replaced_as_a_whole(store: Store) -> None:
    """B16: an entry has the citations that the last operation gave it; one from an older look is a Conflict."""
    one, other = entry("The mill grinds rye"), entry("The mill is closed")
    commit(store, put(one), put(other))
    first = [cited(one.id), cited(one.id, "a.py", first=3, last=9, around="x y z", revision="c0", by="rule")]
    commit(store, SaveCitations(one.id, tuple(first)), SaveCitations(other.id, (cited(other.id),)))
    assert store.citations([one.id]) == first
    assert [c.entry for c in store.newest_citations(limit=2)] == [other.id, one.id]
    assert [c.id for c in store.newest_citations(limit=9, after=first[1].id)] == [first[0].id]
    with pytest.raises(Conflict):
        commit(store, SaveCitations(one.id, (cited(one.id),)))
    commit(store, SaveCitations(one.id, (first[1],), tuple(c.id for c in first)))
    assert store.citations([one.id]) == [first[1]]
    assert [e.action for e in store.events(subject=one.id)] == ["entry.added", "citation.made", "citation.made"]
    assert "mill.py" not in str([e.detail for e in store.events()])
    assert store.check() == []


def test_an_entry_that_is_not_here_cites_nothing(store: Store) -> None:
    """W9: an unknown id is refused, and nothing is written."""
    with pytest.raises(NotFound):
        commit(store, SaveCitations(new_id(), (cited(new_id()),)))
    assert store.newest_citations(limit=9) == []


def test_a_check_replaces_the_one_before_it_and_leaves_no_event(store: Store) -> None:
    """B16: the last outcome counts; the outcome for a citation that has gone meanwhile is let go."""
    one = entry("The mill grinds rye")
    mine = cited(one.id)
    commit(store, put(one), SaveCitations(one.id, (mine,)))
    seen = CitationCheck(mine.id, one.id, CitationVerdict.VERIFIED, NOW, verified_at=NOW)
    lost = CitationCheck(new_id(), one.id, CitationVerdict.GONE, NOW)
    head = store.head()
    commit(store, SaveChecks((seen, lost)))
    assert store.citation_checks([one.id]) == [seen]
    moved = replace(seen, verdict=CitationVerdict.CHANGED, at=later(3), path="b.py", line=4, why="another text")
    commit(store, SaveChecks((moved,)))
    assert store.citation_checks([one.id]) == store.checks_that_say(AMISS, limit=5) == [moved]
    assert store.checks_that_say([CitationVerdict.VERIFIED], limit=5) == []
    assert store.head() == head


def test_what_is_removed_takes_its_citations_along(store: Store) -> None:
    """H1: dropped or scrubbed, neither citations nor checks of an entry stay; the log vouches for the rest."""
    one, other = entry("The mill grinds rye"), entry("The mill is closed")
    commit(store, put(one), put(other))
    for each in (one, other):
        mine = cited(each.id)
        commit(store, SaveCitations(each.id, (mine,)))
        commit(store, SaveChecks((CitationCheck(mine.id, each.id, CitationVerdict.GONE, NOW),)))
    commit(store, DropEntry(one.id, 1, "gone"))
    assert (store.citations([one.id]), store.citation_checks([one.id]), store.check()) == ([], [], [])
    extent = Extent("w1", Mode.FULL, WORK, whole=True)
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent)), {}))
    assert (store.newest_citations(limit=9), store.citation_checks([other.id]), store.check()) == ([], [], [])
