"""Pairs of entries about the same thing, and statements that repeat an entry."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lukasa.model.entry import Confirmation, Rivalry
from lukasa.model.errors import NotFound
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.transcript import Quote
from lukasa.model.values import Relation
from lukasa.storage.operations import DropEntry, DropRivals, SaveConfirmation, SaveRivalry, Scrub
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, WORK, commit, entry, later, put


def test_a_pair_is_found_from_both_sides_and_judged_once(store: Store) -> None:
    """W4: the pair of two entries has one row, which a judgement replaces; its time stays."""
    old, new, other = entry("The mill grinds rye"), entry("The mill grinds oats"), entry("The mill is closed")
    commit(store, put(old), put(new), put(other))
    pair = Rivalry(new.id, old.id, Relation.UPDATE, "two values", NOW)
    more = Rivalry(other.id, old.id, Relation.CLOSE, "near", NOW)
    commit(store, SaveRivalry(pair), SaveRivalry(more))
    assert store.rivals([old.id]) == [pair, more]
    assert store.rivals([new.id]) == store.rivals([new.id, old.id])[:1] == [pair]
    assert store.open_rivals(Relation.UPDATE, limit=5) == [pair]
    judged = replace(pair, relation=Relation.BOTH, reason="two mills", at=later(9), decided_by="ada")
    commit(store, SaveRivalry(judged))
    assert store.rivals([new.id]) == [replace(judged, at=NOW)]
    assert store.open_rivals(Relation.UPDATE, limit=5) == store.open_rivals(Relation.BOTH, limit=5) == []
    assert [event.action for event in store.events(subject=new.id)][1:] == ["rivals.found", "rivals.judged"]
    commit(store, DropRivals(old.id))
    assert store.rivals([old.id, new.id, other.id]) == []


def test_a_pair_needs_two_entries(store: Store) -> None:
    """W9: an id that names nothing is refused, and nothing is written."""
    one = entry("The mill grinds rye")
    commit(store, put(one))
    with pytest.raises(NotFound):
        commit(store, SaveRivalry(Rivalry(one.id, entry("Nothing").id, Relation.SAME, "", NOW)))
    assert store.rivals([one.id]) == []


def test_confirmations_are_kept_in_order(store: Store) -> None:
    """W3: who said it again, when, where, in which words, and with which quotes."""
    one = entry("The mill grinds rye")
    commit(store, put(one))
    again = [
        Confirmation(one.id, later(1), "ada", "Ines", "talk-1", "the mill grinds RYE", (Quote("t1", "m1", 0, 19),)),
        Confirmation(one.id, later(2), "bob", "user", "", "The mill grinds rye!"),
    ]
    commit(store, *map(SaveConfirmation, again))
    assert store.confirmations([one.id]) == again
    assert store.confirmations([entry("Nothing").id]) == []


def test_what_is_removed_takes_its_pairs_and_confirmations(store: Store) -> None:
    """H1: dropped one by one or scrubbed, nothing about an entry stays."""
    old, new, third = entry("The mill grinds rye"), entry("The mill grinds oats"), entry("The mill is closed")
    for one in (old, new, third):
        commit(store, put(one), SaveConfirmation(Confirmation(one.id, NOW, "ada", "user", "", one.content)))
    commit(store, *(SaveRivalry(Rivalry(one.id, old.id, Relation.UPDATE, "", NOW)) for one in (new, third)))
    commit(store, DropEntry(new.id, 1, "gone"))
    assert [pair.entry for pair in store.rivals([old.id])] == [third.id]
    assert store.confirmations([new.id]) == []
    extent = Extent("w1", Mode.FULL, WORK, whole=True)
    commit(store, Scrub(extent, manifest_digest(extent, store.holdings(extent)), {}))
    assert store.rivals([old.id, third.id]) == []
    assert store.confirmations([old.id, third.id]) == []
