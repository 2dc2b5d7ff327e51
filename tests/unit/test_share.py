"""Shares of an answer: who waits behind whom, and when a search asks again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.values import Trust
from lukasa.read.share import arranged, crowded_out, shares_of

SPEC = {"untrusted": 0.4, "imported": 0.6, "agent": 0.75}
WEB, FILE, AGENT, AUTHOR = Trust
TRUSTS = st.lists(st.sampled_from(Trust), max_size=40)


def test_untrusted_text_waits_behind_the_author() -> None:
    """T48: with four of ten places, the fifth untrusted entry comes after all that are trusted more."""
    trusts = [WEB] * 20 + [AUTHOR] * 3
    assert arranged(trusts, shares_of(SPEC, 10)) == [0, 1, 2, 3, 20, 21, 22, *range(4, 20)]


def test_one_trust_keeps_its_order() -> None:
    """R5: where all entries are trusted alike, ranking alone decides."""
    for trust in Trust:
        assert arranged([trust] * 9, shares_of(SPEC, 3)) == list(range(9))


def test_places_are_counted_with_those_of_less_trust() -> None:
    """T48: agents and pages together leave the author the places that agents alone would leave."""
    trusts = [WEB, AGENT, WEB, AGENT, AGENT, AGENT, AGENT, AUTHOR, AUTHOR]
    first = arranged(trusts, shares_of(SPEC, 4))[:4]
    assert first == [0, 1, 2, 7]


def test_one_origin_leaves_room_for_others_of_its_trust() -> None:
    """T48: a page that writes much does not hide what another page says."""
    trusts = [WEB] * 6
    origins = dict(enumerate(["loud", "loud", "loud", "loud", "quiet", "loud"]))
    assert arranged(trusts, shares_of(SPEC, 5), origins) == [0, 4, 1, 2, 3, 5]


@given(trusts=TRUSTS, limit=st.integers(1, 12))
def test_nothing_is_lost_and_more_trust_is_never_behind_for_it(trusts: list[Trust], limit: int) -> None:
    """T48: every entry stays, equals stay in order, and the first places hold no more of a trust than its share."""
    shares = shares_of(SPEC, limit)
    order = arranged(trusts, shares)
    assert sorted(order) == list(range(len(trusts)))
    for trust in Trust:
        mine = [position for position in order if trusts[position] is trust]
        assert mine == sorted(mine)
        taken = sum(trusts[position] <= trust for position in order[:limit])
        more = sum(one > trust for one in trusts)
        assert taken <= max(shares.most[trust], limit - more)


def test_a_search_asks_again_only_if_somebody_may_be_crowded_out() -> None:
    """T48: enough of more trust, or nothing of less, needs no second search."""
    assert crowded_out([AUTHOR] * 40, 7) == []
    assert crowded_out([WEB] * 30 + [AUTHOR] * 7, 7) == []
    assert crowded_out([AGENT] * 40, 7) == [AUTHOR]
    assert crowded_out([WEB] * 40, 7) == [AUTHOR, AGENT, FILE]
