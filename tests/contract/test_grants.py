"""Grants of other clients, and the answers that are kept for their keys."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lukasa.model.answer import Answer
from lukasa.model.errors import Conflict, NotFound
from lukasa.model.grant import Capability, Grant, Reach, token_digest
from lukasa.model.ids import new_id
from lukasa.model.values import Trust
from lukasa.storage.operations import DropAnswer, ForgetAnswers, SaveAnswer, SaveGrant
from lukasa.storage.port import Store
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.stores import NOW, commit, later

SECRET = "lks_secret"


def grant(name: str = "claude", **changes: object) -> Grant:
    made = Grant(
        id=new_id(),
        name=name,
        principal=name,
        agent=name,
        workspaces=("w1", "w2"),
        capabilities=(Capability.READ, Capability.WRITE),
        reach=Reach(("workspace",), ("c1",), ("t1", "t2"), {"org_id": "acme"}),
        trust=Trust.AGENT,
        created_at=NOW,
        digest=token_digest(SECRET),
        expires_at=later(60),
    )
    return replace(made, **changes)


def test_grants_are_kept_whole(store: Store) -> None:
    """X4: every field of a grant comes back, the oldest grant first; also those that are over."""
    one, two = grant(), grant("cursor", trust=Trust.UNTRUSTED, expires_at=None, reach=Reach())
    commit(store, SaveGrant(one, 0), SaveGrant(two, 0))
    ended = replace(one, revoked_at=later(5))
    commit(store, SaveGrant(ended, 1))
    assert store.grants() == [replace(ended, version=2), two]
    assert store.grant(two.id) == two
    assert store.grant("nobody") is None


def test_a_grant_changes_from_the_version_it_has(store: Store) -> None:
    """X4, T03: two who change a grant at once do not undo one another."""
    one = grant()
    commit(store, SaveGrant(one, 0))
    commit(store, SaveGrant(replace(one, revoked_at=NOW), 1))
    for expect in (0, 1):
        with pytest.raises(Conflict):
            commit(store, SaveGrant(one, expect))
    with pytest.raises(NotFound):
        commit(store, SaveGrant(grant("nobody"), 3))


def test_the_log_names_a_grant_and_not_its_token(store: Store) -> None:
    """X2, X4: making and ending a grant are events, which hold neither token nor digest."""
    one = grant()
    commit(store, SaveGrant(one, 0))
    commit(store, SaveGrant(replace(one, revoked_at=NOW), 1))
    events = store.events(subject=one.id)
    assert [event.action for event in events] == ["grant.created", "grant.revoked"]
    assert events[0].detail["capabilities"] == ["read", "write"]
    assert SECRET not in str(events)
    assert one.digest not in str(events)


LIES = ['capabilities = \'["read","events"]\'', "workspaces = '[\"w9\"]'", "trust = 0"]
LIES += ["scope = '{}'", 'scope = \'{"org_id":"evil"}\'']


@pytest.mark.parametrize("lie", LIES)
def test_a_widened_grant_is_found(store: Store, lie: str) -> None:
    """X2, X4: a grant that was changed in the file, past the log, does not pass the check."""
    if not isinstance(store, SqliteStore):
        return
    commit(store, SaveGrant(grant(), 0))
    assert store.check() == []
    with store._connections.writing() as db:
        db.execute("CREATE TEMP TABLE kept AS SELECT * FROM main.grants")
        db.execute(f"UPDATE grants SET {lie}")
    assert [finding.what for finding in store.check()] == ["grant"]
    with store._connections.writing() as db:
        db.execute("DELETE FROM main.grants")
        db.execute("INSERT INTO main.grants SELECT * FROM kept")


def test_a_revoked_grant_cannot_be_brought_back_in_the_file(store: Store) -> None:
    """X2, X4: the row of the former version is one that the log knows, and still not the last."""
    if not isinstance(store, SqliteStore):
        return
    one = grant()
    commit(store, SaveGrant(one, 0), SaveGrant(replace(one, revoked_at=NOW), 1))
    with store._connections.writing() as db:
        db.execute("CREATE TEMP TABLE kept AS SELECT * FROM main.grants")
        db.execute("UPDATE grants SET revoked_at = NULL, version = 1")
    assert [finding.what for finding in store.check()] == ["grant"]
    with store._connections.writing() as db:
        db.execute("DELETE FROM main.grants")
        db.execute("INSERT INTO main.grants SELECT * FROM kept")


def test_a_key_belongs_to_one_request(store: Store) -> None:
    """U4: a key that is taken is taken, an answer stands, and another request cannot have the key."""
    waiting = Answer("k", "r1", NOW)
    commit(store, SaveAnswer(waiting))
    for again in (waiting, Answer("k", "r2", NOW), Answer("k", "r2", NOW, 200)):
        with pytest.raises(Conflict):
            commit(store, SaveAnswer(again))
    done = Answer("k", "r1", later(1), 200, "{}")
    commit(store, SaveAnswer(done))
    assert store.answer("k") == done
    with pytest.raises(Conflict):
        commit(store, SaveAnswer(waiting, later(99)))
    commit(store, DropAnswer("k"))
    assert store.answer("k") == done


def test_a_key_can_be_given_back_or_taken_over(store: Store) -> None:
    """U4: a request that failed gives its key back, and one that died is succeeded."""
    commit(store, SaveAnswer(Answer("k", "r1", NOW)))
    commit(store, DropAnswer("k"), DropAnswer("nobody"))
    assert store.answer("k") is None
    commit(store, SaveAnswer(Answer("k", "r1", NOW)))
    with pytest.raises(Conflict):
        commit(store, SaveAnswer(Answer("k", "r1", later(9)), NOW))
    commit(store, SaveAnswer(Answer("k", "r1", later(9)), later(1)))
    assert store.answer("k") == Answer("k", "r1", later(9))


def test_answers_are_not_kept_for_ever(store: Store) -> None:
    """U4: old answers go, and none of it is an event."""
    commit(store, SaveAnswer(Answer("old", "r", NOW, 200, "x")), SaveAnswer(Answer("new", "r", later(9), 200, "y")))
    commit(store, ForgetAnswers(NOW + timedelta(seconds=5)))
    assert store.answer("old") is None
    assert store.answer("new") is not None
    assert store.head()[0] == 0
