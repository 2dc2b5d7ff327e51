"""What a thing is follows from its revisions alone: not from the order in which they came, nor from how often."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.sync import Revision, revision_digest
from lukasa.write import revisions

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def revision(body: dict[str, Any] | None, *parents: str, at: int = 0, machine: str = "a") -> Revision:
    moment, salt = BEGAN + timedelta(seconds=at), f"{at}{machine}{len(parents)}"
    digest = revision_digest("", "page", "t", parents, body or {}, moment, machine, salt)
    return Revision("", "page", "t", parents, body, moment, machine, salt, digest)


def text(said: str | None, *parents: str, at: int = 0, machine: str = "a") -> Revision:
    body = {"name": ["VOICE"], "text": None if said is None else {"body": said}, "rest": {}, "fields": {}}
    return revision(body, *parents, at=at, machine=machine)


def fields(said: dict[str, Any], *parents: str, at: int = 0) -> Revision:
    return revision({"name": ["x"], "set": said}, *parents, at=at)


def erasure(
    erased: list[str], *parents: str, kept: tuple[str, ...] = (), at: int = 50, whole: bool = False
) -> Revision:
    return revision({"erased": sorted(erased), "kept": sorted(kept), "whole": whole}, *parents, at=at)


def said(found: list[revisions.Path]) -> list[Any]:
    return [None if path.body is None else path.body["text"]["body"] for path in found]


@st.composite
def graphs(draw: st.DrawFn, *, repeated: bool = True) -> list[Revision]:
    """Texts that several machines made, each from one that it had seen; some were erased."""
    made = [text("first")]
    for n in range(draw(st.integers(0, 14))):
        before = made[draw(st.integers(0, len(made) - 1))]
        what = draw(st.sampled_from(["text", "text", "text", "same" if repeated else "text", "gone", "erase"]))
        if what == "erase":
            gone = [one.digest for one in made if not revisions.is_erasure(one)]
            some = draw(st.lists(st.sampled_from(gone), unique=True, min_size=1))
            kept = tuple(digest for digest in gone if digest not in some)
            made.append(erasure(some, *some[-1:], kept=kept, at=n))
        else:
            words = None if what == "gone" else "the same" if what == "same" else f"text {n}"
            made.append(text(words, before.digest, at=draw(st.integers(0, 9)), machine=draw(st.sampled_from("abc"))))
    return list({one.digest: one for one in made}.values())


@given(graphs(), st.randoms(use_true_random=False))
def test_texts_do_not_depend_on_the_order_of_their_revisions(made: list[Revision], chance: random.Random) -> None:
    """27: every order gives the same texts in the same places, and the same revisions to change them from."""
    expected = revisions.paths(made)
    for _ in range(4):
        chance.shuffle(made)
        assert revisions.paths(made) == expected


@given(graphs(repeated=False))
def test_no_text_is_lost_that_nobody_replaced_or_erased(made: list[Revision]) -> None:
    """27: each end of the graph is shown, but for texts that were taken away or erased."""
    gone, parents = revisions.erased(made), {parent for one in made for parent in one.parents}
    ends = {
        one.body["text"]["body"]
        for one in made
        if one.digest not in parents and one.digest not in gone and one.body and one.body.get("text") is not None
    }
    assert ends <= {path.body["text"]["body"] for path in revisions.paths(made) if path.body and path.body["text"]}


def test_the_path_that_began_first_keeps_its_place() -> None:
    """27: the place is that of the earlier change, also after the other path went on."""
    root = text("north")
    one, other = text("south", root.digest, at=2), text("east", root.digest, at=3, machine="b")
    later = text("west", other.digest, at=1, machine="b")
    found = revisions.paths([later, other, one, root])
    assert said(found) == ["south", "west"]
    assert [path.mark for path in found] == ["", other.digest]
    assert [path.heads for path in found] == [(one.digest,), (later.digest,)]


def test_the_same_change_on_two_machines_is_one() -> None:
    """27: it makes no second text, and the next change is made from both."""
    root = text("north")
    one, other = text("south", root.digest, at=2), text("south", root.digest, at=3, machine="b")
    (found,) = revisions.paths([root, other, one])
    assert found.heads == tuple(sorted((one.digest, other.digest)))


def test_a_change_survives_that_nobody_who_took_it_away_had_seen() -> None:
    """27: taking a note away on one machine does not take the other machine's change along."""
    root = text("north")
    gone, changed = text(None, root.digest, at=1), text("south", root.digest, at=2, machine="b")
    assert said(revisions.paths([root, gone, changed]))[:1] == ["south"]


def test_nothing_that_was_made_from_an_erased_text_comes_back() -> None:
    """27: a change of an erased text is erased, also if it comes later; one made after the erasure counts."""
    root = text("Ada")
    gone, late = erasure([root.digest], root.digest), text("Ada too", root.digest, at=60, machine="b")
    assert said(revisions.paths([root, gone, late])) == [None]
    assert revisions.erased([gone, late]) == {root.digest, late.digest}
    new = text("nobody", gone.digest, at=70)
    assert said(revisions.paths([late, new, gone, root]))[:1] == ["nobody"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 20)), max_size=14), st.randoms())
def test_fields_do_not_depend_on_the_order_of_their_revisions(
    given_: list[tuple[str, int, int]], chance: random.Random
) -> None:
    """27: fields that were set apart are merged one by one, alike in every order."""
    made = [fields({"a": 0, "b": 0})]
    for n, (name, value, before) in enumerate(given_):
        made.append(fields({name: value}, made[before % len(made)].digest, at=n % 5))
    made = list({one.digest: one for one in made}.values())
    expected = revisions.merged(made)
    for _ in range(3):
        chance.shuffle(made)
        assert revisions.merged(made) == expected
    assert set(expected) == {name for one in made for name in (one.body or {})["set"]}


def test_fields_are_merged_by_their_rules() -> None:
    """27: tags add up, trust falls, a retraction comes before what age did, and else the last value counts."""
    root = fields({"importance": 0.5, "trust": 3, "state": ["active", None, None, None]})
    one = fields({"importance": 0.9, "tags/x": True, "state": ["forgotten", None, None, None]}, root.digest, at=1)
    other = fields({"importance": 0.7, "trust": 1, "state": ["stale", None, None, None]}, root.digest, at=2)
    found = revisions.merged([other, root, one])
    assert (found["importance"], found["trust"], found["tags/x"], found["state"][0]) == (0.7, 1, True, "forgotten")
    after = fields({"state": ["active", None, None, None]}, one.digest, other.digest, at=3)
    assert revisions.merged([other, after, root, one])["state"][0] == "active"
