"""The time that a question names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.read.times import Span, span

NOW = datetime(2023, 10, 25, 15, 30, tzinfo=UTC)  # a Wednesday


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What did we decide in May 2023?", "2023-05-01", "2023-06-01"),
        ("what did we decide in may 2023?", "2023-05-01", "2023-06-01"),
        ("What happened in March?", "2023-03-01", "2023-04-01"),
        ("Who called in December?", "2022-12-01", "2023-01-01"),
        ("Who called on 3 June?", "2023-06-03", "2023-06-04"),
        ("Who called on the 3rd of June, 2022?", "2022-06-03", "2022-06-04"),
        ("Who called on August 14, 2023?", "2023-08-14", "2023-08-15"),
        ("What was deployed on 2023-05-03?", "2023-05-03", "2023-05-04"),
        ("What was planted last spring?", "2023-03-01", "2023-06-01"),
        ("What was planted last winter?", "2022-12-01", "2023-03-01"),
        ("Where did they go in the summer of 2021?", "2021-06-01", "2021-09-01"),
        ("Who came two weeks ago?", "2023-10-08", "2023-10-15"),
        ("Who came 3 days ago?", "2023-10-22", "2023-10-23"),
        ("Who came yesterday?", "2023-10-24", "2023-10-25"),
        ("Who came the day before yesterday?", "2023-10-23", "2023-10-24"),
        ("Who came last week?", "2023-10-16", "2023-10-23"),
        ("Who came last weekend?", "2023-10-21", "2023-10-23"),
        ("Who came last Tuesday?", "2023-10-24", "2023-10-25"),
        ("Who came last month?", "2023-09-01", "2023-10-01"),
        ("Who came last year?", "2022-01-01", "2023-01-01"),
        ("What was published in 2021?", "2021-01-01", "2022-01-01"),
        ("What did I do on 21.01.2023?", "2023-01-21", "2023-01-22"),
        ("What did I do on 1/21/2023?", "2023-01-21", "2023-01-22"),
        ("What did I do on 21/01/2023?", "2023-01-21", "2023-01-22"),
        ("Was habe ich am 21.1. gemacht?", "2023-01-21", "2023-01-22"),
        ("Was geschah am 3. März 2022?", "2022-03-03", "2022-03-04"),
        ("Was wurde im Mai beschlossen?", "2023-05-01", "2023-06-01"),
        ("Wer kam vor zwei Wochen?", "2023-10-08", "2023-10-15"),
        ("Wer kam letzten Dienstag?", "2023-10-24", "2023-10-25"),
        ("Wer rief gestern an?", "2023-10-24", "2023-10-25"),
        ("Wer kam letztes Jahr?", "2022-01-01", "2023-01-01"),
        ("What happened in the first week of 2023?", "2023-01-01", "2023-01-08"),
        ("What happened in the last week of May?", "2023-05-25", "2023-06-01"),
        ("Was geschah in der ersten Woche 2023?", "2023-01-01", "2023-01-08"),
        ("Who came in the second half of 2022?", "2022-07-01", "2023-01-01"),
        ("Who came in early March 2023?", "2023-03-01", "2023-03-11"),
        ("Wer kam Ende 2022?", "2022-09-01", "2023-01-01"),
        ("Who came on the weekend of 3 June?", "2023-06-03", "2023-06-05"),
        ("What did I read in the week of March 8?", "2023-03-06", "2023-03-13"),
        ("What did I read between 3 and 5 March 2023?", "2023-03-03", "2023-03-06"),
        ("What did I read from March to May 2022?", "2022-03-01", "2022-06-01"),
        ("Was las ich vom 3. bis 5. März 2023?", "2023-03-03", "2023-03-06"),
        ("What was sold in Q2 2023?", "2023-04-01", "2023-07-01"),
        ("Was war in KW 12 2023?", "2023-03-20", "2023-03-27"),
        ("Where were we at Christmas?", "2022-12-24", "2022-12-27"),
        ("What was built in the 1990s?", "1990-01-01", "2000-01-01"),
    ],
)
def test_a_time_is_understood(question: str, start: str, end: str) -> None:
    """R1: calendar dates, months, seasons and relative times name a stretch of the past."""
    found = span(question, NOW)
    assert found is not None
    assert (found.start, found.end) == (day(start), day(end))


@pytest.mark.parametrize(
    "question",
    [
        "When is the meeting on Monday?",
        "What is planned for next week?",
        "Who may march with us?",
        "How many weeks ago did I buy it?",
        "What is planned for 3 May 2031?",
        "Who came on 31 June?",
        "Is port 2023 open?",
        "What is new in 2.1.23?",
        "Does 1.10.2022.4 fix it?",
        "What does Ann think about Christmas?",
        "Who walked from the mill to the bridge?",
        "",
    ],
)
def test_no_stretch_of_the_past_is_named(question: str) -> None:
    """R1: a weekday to come, a plan, a verb, a question about time or a number is not taken for a time."""
    assert span(question, NOW) is None


def test_what_is_told_a_few_days_later_is_near() -> None:
    """R1: inside a span is nearest, soon after is near, and before it or long after is not."""
    found = Span(day("2023-05-03"), day("2023-05-04"))
    near = [found.nearness(day("2023-05-03") + timedelta(days=n)) for n in (0, 3, 20, -5)]
    assert near[0] > near[1] > near[2] == near[3] == 0


def test_a_text_may_name_the_time_itself() -> None:
    """R1: "the 3rd of May" is of that day, whenever it was written."""
    found = span("Who called on 3 May 2023?", NOW)
    assert found is not None
    assert found.named_in("The dentist is booked for May 3rd")
    assert not found.named_in("The dentist is booked for May 30")
    assert not found.named_in("She may call 3 times")


@given(st.text(max_size=80), st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_any_text_is_read_without_failing(text: str, now: datetime) -> None:
    """W9: whatever is asked, a span is in the past and not empty, or there is none."""
    found = span(text, now)
    assert found is None or (found.start <= now.astimezone(UTC) + timedelta(0) and found.start < found.end)


@given(st.integers(0, 9999), st.sampled_from("day week month year".split()), st.sampled_from(["ago", "back"]))
def test_any_distance_is_read_without_failing(count: int, unit: str, word: str) -> None:
    """W9: a distance beyond the calendar names nothing."""
    found = span(f"what happened {count} {unit}s {word}", NOW)
    assert found is None or found.start < found.end
