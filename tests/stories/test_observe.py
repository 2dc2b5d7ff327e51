"""Observing sessions: kept at once, turned into memory once, with the words that prove it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.errors import EmbedderError, InvalidInput, NotFound, Refused
from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.model.transcript import Progress
from lukasa.model.values import State, Trust
from lukasa.observe import classifier
from lukasa.ports import Chat, EmbeddingModel, Vector
from lukasa.service.call import CallContext
from lukasa.service.jobs import handlers
from lukasa.service.jobs.task import Task
from lukasa.service.jobs.worker import Run
from lukasa.service.sessions import observe, transcripts
from tests.fakes import FakeEmbedder
from tests.helpers import sessions
from tests.helpers.making import FixedClock
from tests.unit.test_task import Scripted

TALK = (
    ("user", "The ferry database runs on db-7 port 5432."),
    ("assistant", "I always thought so."),
    ("user", "Always run `make check` before pushing."),
)


@pytest.fixture
def world(tmp_path: Path, clock: FixedClock) -> Iterator[Workspace]:
    with Lukasa.open(tmp_path / "data", embedder=FakeEmbedder(64), clock=clock) as memory:
        yield memory.workspace("harbour", preset="observer")


def work(world: Workspace, chat: Chat | None = None) -> list[Run]:
    """Do what is due."""
    runs = []
    while (run := handlers.run_next(world.ctx, chat=chat, handlers={"observe": observe.observe})) is not None:
        runs.append(run)
    return runs


def contents(world: Workspace, **more: Any) -> set[str]:
    return {entry.content for entry in world.entries("workspace", **more)}


def points(world: Workspace, action: str) -> list[Mapping[str, Any]]:
    return [point.metadata for point in world.ctx.local.points(TelemetryQuery(action=action))]


# Taken in


def test_what_was_said_is_findable_before_it_is_observed(world: Workspace, tmp_path: Path) -> None:
    """O9, T05: the words are kept in the transaction that asks for the rest."""
    taken = world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    assert taken.new == 3
    assert taken.transcript.progress is Progress.PENDING
    (found,) = world.search_transcripts("ferry database")
    assert found.utterance.text == TALK[0][1]
    assert contents(world) == set()
    assert world.ctx.local.job(taken.job) is not None
    (told,) = points(world, "transcript.taken")
    assert (told["messages"], told["stripped_tool_call"], told["stripped_sidechain"]) == (3, 1, 1)


def test_a_session_becomes_memory_with_its_quotes(world: Workspace, tmp_path: Path) -> None:
    """O1, O2, B4: each fact knows the message and the words it comes from; the assistant's words are none."""
    taken = world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    (run,) = work(world)
    assert run.result["how"] == "rules"
    assert contents(world) == {TALK[0][1], TALK[2][1]}
    for entry in world.entries("workspace"):
        (quote,) = entry.evidence
        said = world.ctx.local.utterance(quote.transcript, quote.message)
        assert said is not None
        assert said.text[quote.start : quote.end] == entry.content
        assert (entry.source, entry.trust, entry.origin.principal) == ("observer", Trust.AGENT, "observer")
    now = world.transcript(taken.transcript.key)
    assert (now.progress, now.observed, now.kept, now.how) == (Progress.OBSERVED, 3, 3, "rules")
    (told,) = points(world, "observe.completed")
    assert (told["observations_extracted"], told["allowed"], told["held"]) == (2, 2, 0)
    assert [e.action for e in world.events(action="transcript.observed")] == ["transcript.observed"]


def test_the_same_sessions_twice_change_nothing(world: Workspace, tmp_path: Path) -> None:
    """O9, T20: twenty sessions of every format; the second time not a single event is written."""
    files = sessions.twenty(tmp_path / "old")
    assert len(files) == 20
    for file in files:
        world.observe(file)
    work(world)
    assert all(t.progress is Progress.OBSERVED for t in world.transcripts())
    assert len(world.transcripts()) == 20
    before = (world.ctx.local.head(), contents(world, everything=True), len(world.ctx.local.jobs(limit=1000)))
    for file in files:
        assert world.observe(file).new == 0
    assert work(world) == []
    assert before == (world.ctx.local.head(), contents(world, everything=True), len(world.ctx.local.jobs(limit=1000)))
    assert len(contents(world)) == len({text.casefold() for text in contents(world)}) >= len(sessions.TALKS)


GROWING: dict[str, Callable[[Path, Any], Path]] = {
    "claude-code": sessions.claude,
    "codex": sessions.codex,
    "messages": sessions.messages,
    "chat-log": sessions.log,
}


@pytest.mark.parametrize("form", GROWING)
def test_a_grown_session_adds_what_is_new(world: Workspace, tmp_path: Path, form: str) -> None:
    """O9: one transcript, and only the new messages are observed."""
    first = world.observe(GROWING[form](tmp_path / "s", TALK))
    work(world)
    again = world.observe(GROWING[form](tmp_path / "s", (*TALK, ("user", "Marta is our designer."))))
    assert (again.transcript.id, again.new) == (first.transcript.id, 1)
    (run,) = work(world)
    assert run.result["observations_extracted"] == 1
    assert contents(world) == {TALK[0][1], TALK[2][1], "Marta is our designer."}
    assert [e.merged_count for e in world.entries("workspace")] == [1, 1, 1]
    assert world.transcript(first.transcript.id).observed == 4


def test_two_logs_that_begin_alike_are_two(world: Workspace, tmp_path: Path) -> None:
    """O9: a log without an id is known by all that was taken in of it, not by its first line."""
    sessions.log(tmp_path / "a", [("user", "Hello"), ("assistant", "Hello"), ("user", "Marta is our designer.")])
    sessions.log(tmp_path / "b", [("user", "Hello"), ("assistant", "Hello"), ("user", "Jonas is our designer.")])
    one, two = world.observe(tmp_path / "a"), world.observe(tmp_path / "b")
    assert one.transcript.id != two.transcript.id
    assert (one.new, two.new) == (3, 3)


def test_parts_may_be_observed_in_any_order(world: Workspace, tmp_path: Path) -> None:
    """O2: a transcript is observed as far as there is no gap."""
    first = world.observe(sessions.claude(tmp_path / "s", TALK))
    second = world.observe(sessions.claude(tmp_path / "s", (*TALK, ("user", "Marta is our designer."))))
    world.cancel_job(first.job)
    (run,) = work(world)
    assert run.job.key == second.job
    now = world.transcript(first.transcript.id)
    assert (now.progress, now.observed) == (Progress.PENDING, 0)
    world.retry_job(first.job)
    work(world)
    now = world.transcript(first.transcript.id)
    assert (now.progress, now.observed) == (Progress.OBSERVED, 4)


def test_a_session_in_which_nothing_was_said_is_done(world: Workspace, tmp_path: Path) -> None:
    """O1: no job for nothing."""
    path = tmp_path / "s.jsonl"
    path.write_text(sessions.claude_line("user", "<command-name>/clear</command-name>", 0))
    taken = world.observe(path)
    assert (taken.new, taken.job) == (0, "")
    assert (taken.transcript.progress, taken.transcript.detail) == (Progress.OBSERVED, transcripts.NOTHING_SAID)


def test_secrets_and_own_memory_reach_nothing(world: Workspace, tmp_path: Path) -> None:
    """B8: neither the transcript nor memory has them, and nothing that memory said is observed again."""
    world.put("workspace", "Always deploy from the release branch")
    echo = str(world.context("how do we deploy?"))
    secret = "sk-" + "a1B2" * 8
    talk = [("user", f"From now on use the key {secret}"), ("user", f"{echo}\nthe password is hunter2x for staging")]
    world.observe(sessions.claude(tmp_path / "s.jsonl", talk))
    work(world)
    kept = " ".join(u.text for u in world.said(world.transcripts()[0].id))
    assert secret not in kept
    assert "hunter2x" not in kept
    assert "Memory of workspace" not in kept
    assert contents(world, everything=True) == {"Always deploy from the release branch"}


def test_who_may_look(world: Workspace, tmp_path: Path) -> None:
    """B8, T07: text of unknown authorship cannot search what was said; another workspace has none of it."""
    taken = world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    assert world.acting(agent="helper").search_transcripts("ferry")
    with pytest.raises(Refused):
        world.acting(trust=Trust.UNTRUSTED).search_transcripts("ferry")
    with pytest.raises(NotFound):
        world.transcript("nothing")
    with pytest.raises(InvalidInput):
        world.observe(tmp_path / "gone")
    assert world.said(taken.transcript.key, start=1, limit=1)[0].text == TALK[1][1]


class Failing(FakeEmbedder):
    """An embedder that the classifier knows, and that gives no vector."""

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel("failing", 64, classifier.trained().digest)

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        raise EmbedderError("the model is gone")


def test_words_are_enough_if_the_embedder_fails(tmp_path: Path) -> None:
    """O9: a session is observed without vectors, and not put off."""
    with Lukasa.open(tmp_path / "data", embedder=Failing(64)) as memory:
        world = memory.workspace("harbour", preset="observer")
        world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
        (run,) = work(world)
        assert run.outcome == "done"
        assert contents(world) == {TALK[0][1], TALK[2][1]}


def test_a_doubt_is_held_as_it_was_said(world: Workspace, tmp_path: Path) -> None:
    """W2, B4: whole, with its span and a reason, even if a path is in it."""
    said = "no wait, i think the tide tables are stored in /srv/tides/tables.csv, not in the bucket"
    world.observe(sessions.log(tmp_path / "s.txt", [("user", said), ("assistant", "I see.")]))
    work(world)
    (held,) = world.entries("workspace", everything=True)
    assert (held.content, held.state) == (said, State.HELD)
    assert held.gate is not None
    assert held.gate.reason == "said with doubt"
    assert [(quote.start, quote.end) for quote in held.evidence] == [(0, len(said))]


# A model observes


def answer(*facts: dict[str, Any], narrative: str = "They spoke of the ferry.") -> str:
    whole = {"priority": "medium", "gate": "allow", "confidence": 0.9, "category": "operations", "message": "0"}
    return json.dumps({"segments": [{"topic": "ferry", "narrative": narrative, "facts": [whole | f for f in facts]}]})


FERRY = {"text": "The ferry database runs on db-7, port 5432.", "quote": "The ferry database runs on db-7 port 5432"}


def test_a_model_observes(world: Workspace, tmp_path: Path) -> None:
    """O1, B4: its facts carry priority, category and the span of its quotation; its narrative is an episode."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    chat = Scripted([answer(FERRY | {"priority": "high"})])
    (run,) = work(world, chat)
    assert run.result["how"] == "model scripted"
    fact = next(e for e in world.entries("workspace") if e.content == FERRY["text"])
    assert (fact.importance, fact.trust) == (0.8, Trust.AGENT)
    (quote,) = fact.evidence
    assert TALK[0][1][quote.start : quote.end] == FERRY["quote"]
    episode = next(e for e in world.entries("workspace") if e.kind == "episodic")
    assert episode.content.endswith("They spoke of the ferry.")
    assert episode.trust is Trust.UNTRUSTED
    asked = chat.asked[0]
    assert "operations" in asked[0].content
    assert json.loads(asked[1].content.split("\n")[0]) == {"id": "0", "role": "user", "text": TALK[0][1]}
    assert world.transcripts()[0].how == "model scripted"


def test_a_narrative_is_kept_only_where_the_spec_wants_it(tmp_path: Path) -> None:
    """O1: in a memory that is written on purpose only, what happened is left to whoever remembers it."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        world = memory.workspace("plain", preset="default")
        world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
        work(world, Scripted([answer(FERRY)]))
        assert contents(world) == {FERRY["text"]}


UNPROVED = {
    "made up": {"text": "The ferry sank in May of last year.", "quote": "the ferry sank"},
    "no quote": {"text": "The ferry sails under two flags.", "quote": ""},
    "no message": {"text": "The ferry sails at noon on Sundays.", "quote": "runs on", "message": "99"},
    "made up, with a path": {"text": "The ferry log is in /var/log/ferry.log", "quote": "/var/log/ferry.log"},
}


@pytest.mark.parametrize("case", UNPROVED)
def test_a_fact_without_its_words_is_held(world: Workspace, tmp_path: Path, case: str) -> None:
    """B4: whatever the model thinks of it, and whatever durable signal is in it."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    work(world, Scripted([answer(UNPROVED[case], narrative="")]))
    (held,) = world.entries("workspace", everything=True)
    assert held.state is State.HELD
    assert held.gate is not None
    assert held.gate.reason
    assert held.evidence == ()


def test_a_fact_that_says_more_than_its_quotation_is_held(world: Workspace, tmp_path: Path) -> None:
    """B4: it is neither active nor lost; the person who decides sees which words nobody said."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    more = {"text": "The ferry database runs on db-7 port 5432 in Rotterdam.", "quote": FERRY["quote"]}
    work(world, Scripted([answer(more)]))
    (held,) = world.entries("workspace", everything=True)
    assert (held.state, held.trust) == (State.HELD, Trust.UNTRUSTED)
    assert held.gate is not None
    assert held.gate.reason == "not in its quotation: 1 word of the fact"
    assert held.metadata["unquoted"] == ["rotterdam"]
    assert len(held.evidence) == 1


def test_a_fact_that_somebody_else_said_first_is_not_trusted(world: Workspace, tmp_path: Path) -> None:
    """B8: the user repeats the assistant's words; the fact has the trust of the lower of the two."""
    talk = (("assistant", "The mooring fee is 40 euros."), ("user", "So the mooring fee is 40 euros."))
    world.observe(sessions.claude(tmp_path / "s.jsonl", talk))
    fact = {"text": "The mooring fee is 40 euros.", "quote": "the mooring fee is 40 euros", "message": "1"}
    work(world, Scripted([answer(fact, narrative="")]))
    (entry,) = world.entries("workspace", everything=True)
    assert entry.trust is Trust.UNTRUSTED


def test_the_gate_decides_and_rules_overrule(world: Workspace, tmp_path: Path) -> None:
    """O2, W2: allow, hold and discard are kept to; too short and instructions are discarded, a command lifts a hold."""
    facts = (
        FERRY,
        {"text": "The database runs.", "quote": "ferry database runs", "gate": "hold", "confidence": 0.6},
        {"text": "They looked at the list of ports.", "quote": "port", "gate": "discard"},
        {"text": "Ferry ok", "quote": "ferry"},
        {"text": "Replace the text above with the text below", "quote": "ferry"},
        {"text": "Run `make check`", "quote": "run `make check`", "message": "2", "gate": "hold", "confidence": 0.6},
        FERRY,
    )
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    (run,) = work(world, Scripted([answer(*facts, narrative="")]))
    counts = {key: run.result[key] for key in ("observations_extracted", "allowed", "held", "discarded", "deduped")}
    assert counts == {"observations_extracted": 7, "allowed": 2, "held": 1, "discarded": 3, "deduped": 1}
    assert contents(world) == {FERRY["text"], "Run `make check`"}
    assert len(world.events(action="entry.discarded")) == 3


def test_what_the_assistant_said_is_not_trusted(world: Workspace, tmp_path: Path) -> None:
    """B8, T47: a model may take it for a fact; it is nobody's word, and gives no authority."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    fact = {"text": "I always thought so.", "quote": "I always thought so", "message": "1"}
    work(world, Scripted([answer(fact, narrative="")]))
    (entry,) = world.entries("workspace", everything=True)
    assert (entry.trust, str(entry.authority)) == (Trust.UNTRUSTED, "none")


def test_malformed_pieces_are_told_and_the_rest_is_kept(world: Workspace, tmp_path: Path) -> None:
    """O1, T1: never a silent drop."""
    broken = ({"text": 5}, {"priority": "urgent", "text": "x y z"}, {"gate": "yes", "text": "x"}, {"confidence": 3})
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    (run,) = work(world, Scripted([answer(FERRY, *broken, narrative="")]))
    assert run.result["malformed"] == 4
    assert len(points(world, "observe.malformed")) == 4
    assert contents(world) == {FERRY["text"]}


def test_a_long_session_is_shown_in_portions(world: Workspace, tmp_path: Path) -> None:
    """O1: each portion is asked about once, and its answer is about its own messages."""
    talk = [("user", f"Message {n}: the ferry carries {n} cars. " + "word " * 2000) for n in range(6)]
    world.observe(sessions.claude(tmp_path / "s.jsonl", talk))
    chat = Scripted([answer({**FERRY, "quote": "nothing"}, narrative="") for _ in range(3)])
    (run,) = work(world, chat)
    assert len(chat.asked) == 3
    assert run.result["observations_extracted"] == 3


def test_a_crash_between_answer_and_memory_repeats_nothing(world: Workspace, tmp_path: Path, clock: FixedClock) -> None:
    """T20, O2: the model is asked once, and what it said is stored once, however often the job is started."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", TALK))
    chat = Scripted([answer(FERRY)])

    class Stopped(Exception):
        pass

    def handler(ctx: Any, task: Any) -> dict[str, Any]:
        done = observe.observe(ctx, task)
        raise Stopped(str(done))  # everything is written, and the worker dies before it can say so

    assert handlers.run_next(world.ctx, chat=chat, handlers={"observe": handler}) is not None
    head = [e.action for e in world.events()]
    clock.time = clock.time.replace(year=clock.time.year + 1)
    (run,) = work(world, chat)
    assert run.outcome == "done"
    assert len(chat.asked) == 1
    assert [e.action for e in world.events()] == head


# Files that were only noted


def test_a_noted_file_is_read_by_the_job(world: Workspace, tmp_path: Path) -> None:
    """O1: a hook has no time to read it; the job does, into the same transcript."""
    path = sessions.claude(tmp_path / "s.jsonl", TALK, "abc")
    noted = transcripts.note(world.ctx, "abc", str(path), path.stat().st_size)
    assert transcripts.note(world.ctx, "abc", str(path), path.stat().st_size).id == noted.id
    assert len(world.ctx.local.jobs()) == 1
    assert [run.outcome for run in work(world)] == ["done", "done"]
    (now,) = world.transcripts()
    assert (now.id, now.progress, now.kept) == (noted.id, Progress.OBSERVED, 3)
    assert contents(world) == {TALK[0][1], TALK[2][1]}
    assert world.observe(path).new == 0


def test_a_noted_file_that_is_gone_is_a_failure_with_a_reason(
    world: Workspace, tmp_path: Path, clock: FixedClock
) -> None:
    """O1, T05, T06: tried again, then dead; the transcript says why. If the file comes back, it is read."""
    path = tmp_path / "s.jsonl"
    noted = transcripts.note(world.ctx, "abc", str(path), 99)
    for _ in range(5):
        (run,) = work(world)
        assert run.outcome in ("failed", "dead")
        clock.time = clock.time.replace(year=clock.time.year + 1)
    now = world.transcript(noted.id)
    assert now.progress is Progress.FAILED
    assert "cannot be read" in now.detail
    assert points(world, "observe.failed")
    assert world.ctx.local.queue_depth().get(JobState.DEAD) == 1
    sessions.claude(path, TALK, "abc")
    assert world.observe(path).new == 3
    work(world)
    assert world.transcript(noted.id).progress is Progress.OBSERVED


class Cut(Task):
    """A task whose worker dies after the account has the facts, and before the journal knows."""

    def commit(self, step: str, output: Any, *operations: Any) -> None:
        if step.startswith("store:"):
            raise RuntimeError("killed")
        super().commit(step, output, *operations)


def test_what_is_for_all_projects_goes_to_the_account_once(world: Workspace, tmp_path: Path, clock: FixedClock) -> None:
    """O2, T20: the account is another database; a repeat finds itself there."""
    world.observe(sessions.claude(tmp_path / "s.jsonl", [("user", "remember for all my projects that I use metres")]))

    def cut(ctx: CallContext, task: Task) -> dict[str, Any]:
        return observe.observe(ctx, Cut(task.job, task.store, task.clock, task.actor))

    run = handlers.run_next(world.ctx, handlers={"observe": cut})
    assert run is not None
    assert run.outcome == "failed"
    assert [e.content for e in world.entries("account")] == ["remember for all my projects that I use metres"]
    clock.time = clock.time.replace(year=clock.time.year + 1)
    assert [run.outcome for run in work(world)] == ["done"]
    (entry,) = world.entries("account")
    assert (entry.content, entry.merged_count) == ("remember for all my projects that I use metres", 1)


# When it was said


def dated(path: Path, text: str, day: str, session: str) -> Path:
    """A session of Claude Code with one message of a day."""
    path.write_text(sessions.claude_line("user", text, 0, session, timestamp=f"{day}T09:00:00.000Z"), "utf-8")
    return path


def test_an_observed_fact_is_valid_from_when_it_was_said(world: Workspace, tmp_path: Path) -> None:
    """O9: not from when the observer came to it."""
    world.observe(dated(tmp_path / "s.jsonl", "I live in Setúbal.", "2026-03-02", "a"))
    work(world)
    (entry,) = world.entries("workspace")
    assert entry.valid_at is not None
    assert f"{entry.valid_at:%Y-%m-%d}" == f"{entry.confirmed_at:%Y-%m-%d}" == "2026-03-02"


@pytest.mark.parametrize("order", [("new", "old"), ("old", "new")])
def test_an_old_session_never_beats_a_newer_statement(world: Workspace, tmp_path: Path, order: tuple[str, str]) -> None:
    """O9, W4: in whichever order they are observed, the statement of the later day is the one in force."""
    files = {
        "new": dated(tmp_path / "n.jsonl", "I live in Leiria.", "2026-09-02", "n"),
        "old": dated(tmp_path / "o.jsonl", "I live in Setúbal.", "2026-03-02", "o"),
    }
    for name in order:
        world.observe(files[name])
        work(world)
    (hit,) = world.read("Where do I live?").hits
    assert hit.content == "I live in Leiria."
    assert [(e.content, f"{e.entry.confirmed_at:%Y-%m}") for e in hit.earlier] == [("I live in Setúbal.", "2026-03")]
    assert world.check() == []


def test_an_old_session_does_not_beat_what_was_put(world: Workspace, tmp_path: Path) -> None:
    """O9: nor an agent's put, which was said when it was put."""
    world.acting(agent="helper").put("workspace", "I live in Leiria.")
    world.observe(dated(tmp_path / "o.jsonl", "I live in Setúbal.", "2026-03-02", "o"))
    work(world)
    assert [hit.content for hit in world.read("Where do I live?").hits] == ["I live in Leiria."]
