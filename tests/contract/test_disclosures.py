"""The disclosure ledger: what went to agents, by entry, page, conversation and principal, and how it ends."""

from __future__ import annotations

from datetime import timedelta

from lukasa.model.disclosure import Disclosure, DisclosureQuery, Shown
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.storage.operations import DropEntry, ForgetDisclosures, Scrub
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, commit, entry, later, put

TALK = "5f1e6bf0-6a0c-4a5e-9d0e-6f1d5b0c7a11"


def sent(minute: int, *items: Shown, to: str = "claude", talk: str = "", workspace: str = "") -> Disclosure:
    tokens = 10 + sum(item.tokens for item in items)
    return Disclosure(later(minute), to, "mcp", "stdio", talk, workspace, "memory_read", tokens, items)


def test_a_disclosure_is_found_by_what_was_in_it(store: Store) -> None:
    """B17: ids, versions, tokens and names of pages come back as they were, and each is found, the newest first."""
    a, b = entry("a"), entry("b")
    commit(store, put(a), put(b))
    first = sent(1, Shown(a.id, 1, 7), Shown('VO"ICE', 3, 90, page=True), talk=TALK)
    second = sent(2, Shown(a.id, 2, 8), Shown(b.id, 1, 5), to="codex")
    for one in (first, second):
        store.disclose(one)
    assert store.disclosures(DisclosureQuery()) == [second, first]
    assert store.disclosures(DisclosureQuery(), limit=1) == [second]
    assert store.disclosures(DisclosureQuery(item=Shown(b.id, 0, 0))) == [second]
    assert store.disclosures(DisclosureQuery(item=Shown('VO"ICE', 0, 0, page=True))) == [first]
    assert store.disclosures(DisclosureQuery(item=Shown("VO", 0, 0, page=True))) == []
    assert store.disclosures(DisclosureQuery(conversation=TALK)) == [first]
    assert store.disclosures(DisclosureQuery(principal="codex", since=later(2))) == [second]
    assert store.check() == []


def test_a_dropped_entry_leaves_its_id(store: Store) -> None:
    """B17: that it was shown is known for as long as the ledger goes back, and nothing of its text."""
    a = entry("a secret of the house")
    commit(store, put(a))
    store.disclose(sent(1, Shown(a.id, 1, 7)))
    commit(store, DropEntry(a.id, 1, "gone"))
    (left,) = store.disclosures(DisclosureQuery(item=Shown(a.id, 0, 0)))
    assert left.items == (Shown(a.id, 1, 7),)


def test_old_and_too_many_disclosures_go(store: Store) -> None:
    """B17: the ledger is bounded by time and number, for each workspace by itself."""
    rows = [sent(n, Shown("VOICE", 1, n, page=True)) for n in range(1, 7)]
    other = sent(0, Shown("SOUL", 1, 1, page=True), workspace=TALK)
    for one in (*rows, other):
        store.disclose(one)
    commit(store, ForgetDisclosures(later(2), 3))
    assert store.disclosures(DisclosureQuery()) == [*rows[:2:-1], other]
    commit(store, ForgetDisclosures(NOW + timedelta(days=1), 9, workspace=TALK))
    assert store.disclosures(DisclosureQuery()) == rows[:2:-1]


def test_a_scrub_takes_what_it_removes_out_of_the_ledger(store: Store) -> None:
    """B5, B17: the entries that go are in no disclosure any more; what else was in the same text stays listed."""
    a = entry("a")
    commit(store, put(a))
    kept = "0197f2c1-7c1e-7d53-9c4b-1f6d3a2b8e90"
    store.disclose(sent(1, Shown(a.id, 1, 7), Shown(kept, 1, 5)))
    store.disclose(sent(2, Shown(a.id, 1, 7)))
    store.disclose(sent(3, Shown(kept, 1, 5), talk=TALK))
    extent = Extent("w", Mode.FULL, a.scope, whole=True, copies=True)
    held = store.holdings(extent)
    assert held.counts["disclosures"] == 2
    commit(store, Scrub(extent, manifest_digest(extent, held), {}))
    assert [one.items for one in store.disclosures(DisclosureQuery())] == [(Shown(kept, 1, 5),)] * 2
    talk = Extent("w", Mode.PURGE_THREAD, conversation=TALK)
    commit(store, Scrub(talk, manifest_digest(talk, store.holdings(talk)), {}))
    assert [one.at for one in store.disclosures(DisclosureQuery())] == [later(1)]
