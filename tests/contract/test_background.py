"""Transcripts, amendments, telemetry and spending."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.errors import Conflict, InvalidInput, NotFound
from lukasa.model.telemetry import DayTally, Level, Spending, TelemetryEvent, TelemetryQuery
from lukasa.model.text import terms
from lukasa.model.transcript import Progress, Quote, Transcript, Utterance
from lukasa.storage.operations import Emit, ForgetTelemetry, KeepUtterances, SaveAmendment, SaveTranscript, Spend
from lukasa.storage.port import Store
from tests.helpers.stores import NOW, commit, entry, later, put

SESSION = Transcript("t1", "claude-code:s1", "claude-code", "Fixing the build", NOW, NOW)
SAID = (
    Utterance("m1", "user", "We deploy with `make ship`, never by hand", 0, NOW),
    Utterance("m2", "assistant", "Noted", 1),
)


def test_transcripts_are_kept_by_key_and_version(store: Store) -> None:
    """O9: a session is there once, and its progress moves by version."""
    commit(store, SaveTranscript(SESSION, 0), KeepUtterances("t1", SAID))
    with pytest.raises(Conflict):
        commit(store, SaveTranscript(replace(SESSION, id="t2"), 0))
    done = replace(SESSION, progress=Progress.OBSERVED, kept=2, observed=2, how="rules", updated_at=later(1))
    commit(store, SaveTranscript(done, 1))
    with pytest.raises(Conflict):
        commit(store, SaveTranscript(done, 1))
    assert store.transcript("claude-code:s1") == store.transcript("t1") == replace(done, version=2)
    assert store.transcripts(progress=Progress.PENDING) == []
    commit(store, SaveTranscript(replace(SESSION, id="t3", key="k3"), 0))
    assert [t.id for t in store.transcripts()] == ["t3", "t1"]
    assert [t.id for t in store.transcripts(after="t3")] == ["t1"]


def test_messages_are_kept_in_place_and_found_by_their_words(store: Store) -> None:
    """O9, T05: what was said is there word for word, and findable, before anything was made of it."""
    commit(store, SaveTranscript(SESSION, 0), KeepUtterances("t1", SAID))
    assert store.utterances("t1") == list(SAID)
    assert store.utterances("t1", start=1, limit=5) == [SAID[1]]
    assert store.utterance("t1", "m2") == SAID[1]
    assert [(s.transcript, s.utterance.id) for s in store.find_utterances(terms("deploy by hand"), 5)] == [("t1", "m1")]
    assert store.find_utterances((), 5) == []
    with pytest.raises(Conflict):
        commit(store, KeepUtterances("t1", (replace(SAID[0], id="m9"),)))
    with pytest.raises(NotFound):
        commit(store, KeepUtterances("nobody", SAID))
    with pytest.raises(InvalidInput):
        commit(store, KeepUtterances("t1", (Utterance("m3", "user", "\ud800", 2),)))
    assert len(store.utterances("t1")) == 2


def test_an_entry_keeps_its_quotes(store: Store) -> None:
    """B4: transcript, message and span travel with the entry and its versions."""
    e = entry(evidence=(Quote("t1", "m1", 3, 20), Quote("t1", "m2", 0, 5)))
    commit(store, put(e))
    assert store.entries([e.id])[e.id].evidence == e.evidence
    assert store.versions(e.id)[0].entry.evidence == e.evidence


def test_amendments_move_by_version(store: Store) -> None:
    """O3, O4: proposed once, decided once."""
    a = Amendment("a1", "operations", "Deploy with make ship", 0.9, ("e1", "e2"), NOW, NOW)
    commit(store, SaveAmendment(a, 0), SaveAmendment(replace(a, id="a2"), 0))
    decided = replace(a, state=AmendmentState.PROMOTED, decided_by="rules", reason="a command", line="Deploy …")
    commit(store, SaveAmendment(decided, 1))
    with pytest.raises(Conflict):
        commit(store, SaveAmendment(decided, 1))
    assert store.amendments(["a1"]) == [replace(decided, version=2)]
    assert [x.id for x in store.amendments(states=[AmendmentState.PENDING])] == ["a2"]


def test_points_stand_by_their_time_however_late_they_are_written(store: Store) -> None:
    """T1: what a process reported is written when it next writes, and others have written since."""
    now, before, first = (TelemetryEvent(later(n), "debug", "library", "memory", f"step{n}", True) for n in (5, 3, 1))
    for point in (first, now, before):
        commit(store, Emit(point))
    assert store.points(TelemetryQuery()) == [now, before, first]
    assert store.points(TelemetryQuery(), limit=2) == [now, before]
    assert store.points(TelemetryQuery(since=later(2), until=later(4))) == [before]


def test_points_are_counted_by_day(store: Store) -> None:
    """T2, U5: a day being one of UTC."""
    late = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
    for at, ok in ((late, True), (late, False), (late + timedelta(minutes=2), True)):
        commit(store, Emit(TelemetryEvent(at, "info", "worker", "observe", "observe.completed", ok)))
    days = [DayTally("2026-03-01", 2, 1), DayTally("2026-03-02", 1, 0)]
    assert store.tally_days(TelemetryQuery()) == days
    assert store.tally_days(TelemetryQuery(since=late + timedelta(minutes=1))) == days[1:]


def test_points_are_found_and_added_up(store: Store) -> None:
    """T1, T2: every report can be searched, and the numbers in them are summed by action."""
    for n, ok in ((2, True), (5, False)):
        level: Level = "info" if ok else "error"
        meta = {"discarded": n, "who": "rules"}
        commit(
            store, Emit(TelemetryEvent(later(n), level, "worker", "observe", "observe.completed", ok, 10.0 * n, meta))
        )
    commit(store, Emit(TelemetryEvent(later(9), "info", "worker", "reflect", "reflect.completed", True, 1.0)))
    assert [p.duration_ms for p in store.points(TelemetryQuery(component="observe"))] == [50.0, 20.0]
    assert [p.action for p in store.points(TelemetryQuery(success=False))] == ["observe.completed"]
    assert store.points(TelemetryQuery(since=later(3), until=later(9), level="error"))[0].metadata == {
        "discarded": 5,
        "who": "rules",
    }
    first, second = store.tally(TelemetryQuery())
    assert (first.action, first.count, first.failures, first.mean_ms, first.max_ms) == (
        "observe.completed",
        2,
        1,
        35.0,
        50.0,
    )
    assert (dict(first.sums), dict(second.sums)) == ({"discarded": 7}, {})
    commit(store, ForgetTelemetry(later(5)))
    assert len(store.points(TelemetryQuery())) == 2


def test_spending_adds_up_by_day_and_model(store: Store) -> None:
    """T06: what models cost is known across restarts."""
    for day, tokens in (("2026-03-01", 10), ("2026-03-01", 5), ("2026-03-02", 1)):
        commit(store, Spend(Spending(day, "m", 1, tokens, 2, 0.5)))
    assert store.spent("2026-03-01") == [
        Spending("2026-03-01", "m", 2, 15, 4, 1.0),
        Spending("2026-03-02", "m", 1, 1, 2, 0.5),
    ]
    assert [s.day for s in store.spent("2026-03-02")] == ["2026-03-02"]


def test_what_is_reported_is_found(store: Store) -> None:
    """T1: a report of what changes nothing is there for whoever asks, once, and is no event."""
    head = store.head()
    read = TelemetryEvent(NOW, "debug", "cli", "memory", "read", True, 2.0, {"hits": 3})
    store.report(read)
    assert store.points(TelemetryQuery()) == [read]
    store.report(replace(read, at=later(1)))
    commit(store, Emit(replace(read, at=later(2), action="context")))
    assert [tally.count for tally in store.tally(TelemetryQuery())] == [1, 2]
    assert store.tally_days(TelemetryQuery()) == [DayTally(f"{NOW:%Y-%m-%d}", 3, 0)]
    assert store.head() == head


def test_reports_of_one_level_are_forgotten(store: Store) -> None:
    """T1: what reads report is many, and is kept for a shorter time than the rest."""
    for level in ("debug", "info"):
        store.report(TelemetryEvent(NOW, level, "cli", "memory", "read", True))
    commit(store, ForgetTelemetry(later(1), "debug"))
    assert [point.level for point in store.points(TelemetryQuery())] == ["info"]
    commit(store, ForgetTelemetry(later(1)))
    assert store.points(TelemetryQuery()) == []
