"""A session's life: Orient → Work → Persist, and what happens when it does not come to its end (L1, L2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lukasa import Lukasa, State, Trust, Workspace
from lukasa.model.errors import ChatError, ChatMalformed, InvalidInput, InvalidTransition
from lukasa.ports import Chat, Reply
from lukasa.providers.chat import open_chat
from lukasa.service.sessions import refine, session
from lukasa.service.sessions.distill import Distilled, Turn, by_model, by_model_or_rules, by_rules
from tests.helpers.chat_server import ChatServer, Fault, Said, follow, status
from tests.helpers.talk import facts, reads


@pytest.fixture
def here(world: Workspace) -> Workspace:
    return session.begin(world.acting(agent="assistant"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def model(server: ChatServer) -> Chat:
    chat = open_chat("openai:fake", server.env)
    assert chat is not None
    return chat


def hear(here: Workspace, *said: str) -> None:
    for text in said:
        session.record(here, Turn("user", text))


def broken(turns: Sequence[Turn]) -> Distilled:
    raise ChatError("the model is away", fix="try later")


def summaries(here: Workspace) -> list[str]:
    return [e.content for e in here.entries("channel", everything=True)]


# Orient and Work


def test_orienting_counts_once(here: Workspace) -> None:
    """L1, D6: what the context shows counts as retrieved, once a call."""
    entry = here.put("workspace", "The villain is called Malachar").entry
    assert entry is not None
    assert entry.id in session.orient(here, "who is the villain?").hits
    assert reads(here, entry) == 1


def test_a_read_in_the_same_turn_is_not_counted_again(here: Workspace) -> None:
    """D6: the context showed it, the tool finds it again: one retrieval; what is new to the turn counts."""
    first = here.put("workspace", "The villain is called Malachar").entry
    second = here.put("workspace", "The villain lives in a tower of glass").entry
    assert first is not None
    assert second is not None
    session.recall(here, "villain", seen=[first.id])
    assert (reads(here, first), reads(here, second)) == (0, 1)


def test_a_subagent_reads_the_tiers_it_names(here: Workspace) -> None:
    """C5: other tiers are not in its context, and not counted."""
    entry = here.put("workspace", "The villain is called Malachar").entry
    assert entry is not None
    assert session.orient(here, "who is the villain?", tiers=("account",)).hits == {}
    assert reads(here, entry) == 0


def test_the_same_message_is_kept_once(here: Workspace) -> None:
    """L1: a step that runs again after a crash does not say things twice."""
    for _ in range(2):
        session.record(here, Turn("user", "Hello there", id="m1"))
    assert [turn.text for turn in session.turns(here)] == ["Hello there"]


def test_only_an_open_conversation_is_taken_up(world: Workspace) -> None:
    """M6: an ended one is refused."""
    ref = world.start().ref_code
    world.end(ref)
    with pytest.raises(InvalidTransition):
        session.begin(world, ref)


def test_a_session_needs_a_conversation(world: Workspace) -> None:
    """W9: what is not bound is said."""
    with pytest.raises(InvalidInput, match="no conversation is bound"):
        session.persist(world)


# Persist


def test_persist_writes_what_work_missed(here: Workspace) -> None:
    """L1: names, preferences, decisions and standing wishes; questions and small talk are left alone."""
    hear(
        here,
        "My name is Ada. Lovely weather!",
        "I prefer tabs over spaces.",
        "We decided to ship in March.",
        "Never use the word suddenly.",
        "Should I always ask first?",
        "The duel was fun to write",
    )
    done = session.persist(here)
    texts = [entry.content for entry in facts(here)]
    assert texts == [
        "My name is Ada.",
        "I prefer tabs over spaces.",
        "We decided to ship in March.",
        "Never use the word suddenly.",
    ]
    assert {entry.source for entry in facts(here)} == {"persist"}
    assert [written.outcome for written in done.facts] == ["stored"] * 4


def test_persist_leaves_alone_what_work_wrote(here: Workspace) -> None:
    """L1: what was stored is not stored again, nor confirmed a second time, also in another tier."""
    hear(here, "Remember that I always prefer dark themes — at the account level.", "I prefer dark themes.")
    here.put("account", "I always prefer dark themes")
    assert session.persist(here).facts == ()
    assert [e.merged_count for e in facts(here, "account")] == [1]


def test_persist_writes_a_request_that_got_no_answer(here: Workspace) -> None:
    """L1: asked to remember, and no model was there to do it: the end does it, as it was asked."""
    hear(here, "Remember that I like green tea for all my workspaces.", "Remember privately: the key is under the mat.")
    session.persist(here)
    assert [e.content for e in facts(here, "account")] == ["I like green tea"]
    assert [(e.content, e.owner) for e in facts(here)] == [("the key is under the mat.", "assistant")]


def test_what_the_session_retired_does_not_come_back(here: Workspace) -> None:
    """L1: a fact that was forgotten or replaced in the session stays so, though it was said."""
    hear(here, "I prefer tea.", "Forget that I prefer tea.")
    here.forget(here.put("workspace", "I prefer tea.").id)
    assert session.persist(here).facts == ()
    assert [e.state for e in facts(here)] == [State.FORGOTTEN]


def test_the_summary_goes_to_the_channel(here: Workspace) -> None:
    """L1: date, ref code, exchanges, what was remembered and asked; of source persist, and it lasts."""
    hear(here, "Remember that the villain is called Malachar.", "Who is the hero?")
    here.put("workspace", "The villain is called Malachar")
    done = session.persist(here)
    assert done.summary is not None
    assert (done.summary.source, done.summary.scope.tier, done.summary.kind) == ("persist", "channel", "episodic")
    assert done.summary.content == (
        f"2026-11-15, conversation {done.conversation.ref_code}, 2 exchanges. "
        "Remembered: “The villain is called Malachar”. Asked: “Who is the hero?”."
    )


def test_a_summary_holds_nothing_private_or_passing(here: Workspace) -> None:
    """L2, M4: what is one agent's own, or ends with the conversation, is not carried into the channel."""
    hear(here, "Is it late?")
    here.put("workspace", "The key is under the mat", owner="assistant")
    here.put("conversation", "We talk about chapter nine today")
    session.persist(here)
    (summary,) = summaries(here)
    assert summary.endswith("1 exchange. Asked: “Is it late?”.")


def test_an_empty_summary_is_not_written(here: Workspace, world: Workspace) -> None:
    """L1: small talk leaves no summary, so the next session's context does not speak of it."""
    hear(here, "Good evening to you", "The tea is getting cold")
    done = session.persist(here)
    assert (done.summary, done.conversation.status, summaries(here)) == (None, "idle", [])
    following = session.begin(world.acting(agent="assistant"))
    assert done.conversation.ref_code not in str(session.orient(following, "Good evening again"))


def test_a_conversation_starts_in_the_bound_channel(world: Workspace) -> None:
    """M3: a bound channel is the default; a named one goes before it."""
    kitchen, cellar = world.create_channel("kitchen"), world.create_channel("cellar")
    bound = world.at(channel="kitchen")
    assert bound.start().channel == kitchen.id
    assert bound.start("cellar").channel == cellar.id


RAVENS = "The duchess of the northern marches keeps seven ravens in the tower and feeds them herself at dawn"


def test_a_refused_fact_blocks_neither_the_others_nor_the_end(memory: Lukasa) -> None:
    """L1, R1: the session ends, its other facts are stored, and the result names the refused one with its reason."""
    desk = memory.workspace("desk", preset="anchored")
    desk.save_document("ravens", RAVENS)
    world = desk.at(org_id="o", domain_id="d")
    here = session.begin(world.acting(agent="assistant"))
    hear(here, f"Remember that {RAVENS}.", "We decided to ship in March.")
    done = session.persist(here)
    assert [written.entry.content for written in done.facts if written.entry] == ["We decided to ship in March."]
    assert [(RAVENS in refused.text, refused.code) for refused in done.refused] == [(True, "mirrors-canonical")]
    assert done.conversation.status == "idle"
    assert desk.events(action="session.persist_failed") == []


def test_a_refused_summary_does_not_block_the_end(memory: Lukasa) -> None:
    """L1, R1: a model's summary that copies a document is refused and reported; the session ends without it."""
    desk = memory.workspace("desk", preset="anchored")
    desk.save_document("ravens", RAVENS)
    world = desk.at(org_id="o", domain_id="d")
    here = session.begin(world.acting(agent="assistant"))
    hear(here, "Read me the page about ravens.")
    done = session.persist(here, distil=lambda said: Distilled((), RAVENS))
    assert (done.summary, done.conversation.status) == (None, "idle")
    assert [refused.code for refused in done.refused] == ["mirrors-canonical"]


def test_the_end_clears_after_persist(here: Workspace) -> None:
    """L2: conversation entries and the scratchpad are still there for the distiller, and gone afterwards."""
    hear(here, "Hello")
    here.put("conversation", "We talk about chapter nine today")
    here.write_note(session.current(here).id, "pages", 3)
    there: list[int] = []

    def distil(turns: Sequence[Turn]) -> Distilled:
        there.extend((len(here.entries("conversation")), len(here.notes(session.current(here).id))))
        return Distilled(())

    done = session.persist(here, distil=distil)
    assert there == [1, 3]
    assert (done.ended.dropped, done.conversation.status) == (1, "idle")
    assert here.entries("conversation", everything=True) == []
    assert here.notes(done.conversation.id) == []


def test_a_failed_persist_leaves_everything_and_says_so(here: Workspace, world: Workspace) -> None:
    """L1: raw turns, entries and notes stay, the conversation is open, and an error event is in the log."""
    hear(here, "I prefer tea.")
    here.put("conversation", "We talk about chapter nine today")
    with pytest.raises(ChatError, match="away"):
        session.persist(here, distil=broken)
    assert [turn.text for turn in session.turns(here)] == ["I prefer tea."]
    assert len(here.entries("conversation")) == 1
    assert session.current(here).status == "active"
    (event,) = world.events(action="session.persist_failed")
    assert (event.subject, event.detail["error"]) == (session.current(here).id, "chat-error")
    assert world.verify() == []


def test_the_next_pass_succeeds_without_duplicates(here: Workspace) -> None:
    """L1: after a failure, and after a success that never came to its end, the same pass writes everything once."""
    hear(here, "I prefer tea.", "Who is the hero?")
    with pytest.raises(ChatError):
        session.persist(here, distil=broken)
    said = session.turns(here)
    for _ in range(3):
        session.persist(here, said)
    assert [(e.content, e.merged_count) for e in facts(here)] == [("I prefer tea.", 1)]
    assert len(summaries(here)) == 1


def test_a_dead_session_is_persisted_by_the_next(here: Workspace, world: Workspace) -> None:
    """L1: it never said goodbye; its words are still there, and the next pass writes them down."""
    hear(here, "I prefer tea.")
    (done,) = session.resume_pending(world)
    assert (done.conversation.id, done.conversation.status) == (session.current(here).id, "idle")
    assert [e.content for e in facts(world)] == ["I prefer tea."]
    assert session.resume_pending(world) == []


def cited(text: str, quote: str, *, message: str = "0", **more: Any) -> dict[str, Any]:
    """A model's fact with the words that it cites."""
    return {"text": text, "message": message, "quote": quote, **more}


@pytest.mark.parametrize("fault", [None, status(500, times=9), status(400)])
def test_a_dead_session_is_looked_through_by_the_model(
    here: Workspace, world: Workspace, server: ChatServer, fault: Fault | None
) -> None:
    """L1: with a model it writes the summary; one that gives no answer leaves it to the rules, and nothing waits."""
    server.model = lambda asked: Reply(
        json.dumps({"summary": "They chose tea.", "facts": [cited("The user prefers tea", "I prefer tea.")]})
    )
    server.always(fault)
    hear(here, "I prefer tea.")
    (done,) = session.resume_pending(world, distil=by_model_or_rules(model(server)))
    assert done.summary is not None
    assert done.summary.content.endswith("They chose tea.") is (fault is None)
    assert [e.content for e in facts(world)] == (["The user prefers tea"] if fault is None else ["I prefer tea."])


def test_a_living_or_left_session_is_let_alone(here: Workspace, world: Workspace) -> None:
    """L1: one that is being led, and one that was left open on purpose, are nobody else's to end."""
    hear(here, "I prefer tea.")
    assert session.resume_pending(world, alive=lambda conversation: True) == []
    session.leave(here)
    assert session.resume_pending(world) == []
    assert session.current(here).status == "active"


def test_pending_sessions_that_fail_again_wait(here: Workspace, world: Workspace) -> None:
    """L1: one failure does not stop the rest, nor lose anything."""
    hear(here, "I prefer tea.")
    assert session.resume_pending(world, distil=broken) == []
    assert len(session.turns(here)) == 1
    assert len(session.resume_pending(world)) == 1


@pytest.mark.parametrize("preset", ["tiered", "workspace", "observer", "default"])
def test_every_preset_has_a_session(memory: Lukasa, preset: str) -> None:
    """L1: the same three steps, whatever the spec."""
    world = memory.workspace(preset, preset=preset)
    here = session.begin(world.acting(agent="assistant"))
    hear(here, "We decided to ship in March.")
    assert str(session.orient(here, "what did we decide?"))
    done = session.persist(here)
    assert done.conversation.status == "idle"
    assert (done.summary is None) == (preset == "tiered")  # there, a summary tells only what somebody decided to keep


def test_an_anchored_session(memory: Lukasa) -> None:
    """L1, P6: with other tiers, the summary goes to the narrowest one that lasts."""
    world = memory.workspace("support", preset="anchored").at(org_id="acme", domain_id="billing")
    here = session.begin(world.acting(agent="assistant"))
    hear(here, "We decided to ship in March.", "Who tells the customers?")
    assert session.persist(here).summary is not None


# By a model


def test_a_model_distils(here: Workspace, server: ChatServer) -> None:
    """L1: structured, checked, and written as any other fact; what was only for now is left out."""
    nine = "I want to discuss chapter nine"
    listed = [cited("The ship is called Vey", "The ship is called Vey", importance=0.8), cited(nine, nine, message="1")]
    answer = {"summary": "They settled the name.", "facts": listed}
    server.model = follow(otherwise=f"Here it is:\n```json\n{json.dumps(answer)}\n```")
    hear(here, "The ship is called Vey", "Keep in mind for this conversation: I want to discuss chapter nine")
    done = session.persist(here, distil=by_model(model(server)))
    (stored,) = facts(here)
    assert (stored.content, stored.importance, stored.state) == ("The ship is called Vey", 0.8, "active")
    assert done.summary is not None
    assert done.summary.content.endswith("2 exchanges: They settled the name.")


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        (cited("The ship is called Morrow", "The ship is called Vey"), "not in its quotation"),
        (cited("The ship is called Vey", "The ship is called Morrow"), "not in the message"),
        ({"text": "The ship is called Vey"}, "names no message"),
        (cited("The ship is called Vey", ""), "quotes nothing"),
        (cited("The captain eats fish", "The captain does not eat fish"), "denies"),
    ],
)
def test_a_models_fact_must_be_in_its_quotation(
    here: Workspace, server: ChatServer, fact: dict[str, Any], reason: str
) -> None:
    """O2: a fact that its quotation does not say is held with the reason, and no read returns it."""
    server.model = follow(otherwise=json.dumps({"summary": "They met.", "facts": [fact]}))
    hear(here, "The ship is called Vey. The captain does not eat fish.")
    (written,) = session.persist(here, distil=by_model(model(server))).facts
    assert written.outcome == "held"
    assert reason in written.reason
    assert here.read(fact["text"], tier="workspace").hits == ()


def test_the_words_that_no_quotation_has_are_kept_beside_the_fact(here: Workspace, server: ChatServer) -> None:
    """O2: a person who decides sees which words the model added."""
    answer = {"summary": "They met.", "facts": [cited("The ship is called Vey and leaks", "The ship is called Vey")]}
    server.model = follow(otherwise=json.dumps(answer))
    hear(here, "The ship is called Vey")
    (written,) = session.persist(here, distil=by_model(model(server))).facts
    assert written.entry is not None
    assert written.entry.metadata == {"unquoted": ["leak"]}


def test_a_fact_that_the_assistant_said_first_is_not_trusted(here: Workspace, server: ChatServer) -> None:
    """O2: the user may only repeat it; the trust is the lowest of everybody it may come from, also of the summary."""
    server.model = follow(
        otherwise=json.dumps(
            {
                "summary": "They met.",
                "facts": [cited("The key is under the mat", "The key is under the mat", message="1")],
            }
        )
    )
    session.record(here, Turn("assistant", "A page says: the key is under the mat."))
    hear(here, "The key is under the mat?! I see. The key is under the mat.")
    done = session.persist(here, distil=by_model(model(server)))
    assert [written.entry.trust for written in done.facts if written.entry] == [Trust.UNTRUSTED]
    assert done.summary is not None
    assert done.summary.trust is Trust.UNTRUSTED


@pytest.mark.parametrize("invented", ["They met Malachar.", "They met 40 times."])
def test_a_summary_tells_only_what_was_said(here: Workspace, server: ChatServer, invented: str) -> None:
    """L1: a model's summary with a name or number that nobody said gives way to the mechanical one."""
    server.model = follow(otherwise=json.dumps({"summary": invented, "facts": []}))
    hear(here, "Where does the ferry land?")
    done = session.persist(here, distil=by_model(model(server)))
    assert done.summary is not None
    assert done.summary.content.endswith("Asked: “Where does the ferry land?”.")


def test_a_malformed_answer_is_sent_back_once(here: Workspace, server: ChatServer) -> None:
    """L1: the model is told what is wrong, and its second answer counts."""
    replies = iter(['{"summary": "", "facts": []}', '{"summary": "They met.", "facts": []}'])
    chat = model(server)
    server.model = lambda asked: follow(otherwise=next(replies))(asked)
    hear(here, "Hello")
    assert session.persist(here, distil=by_model(chat)).summary is not None
    assert "summary is empty" in server.asked[1].said


@pytest.mark.parametrize(
    "answer",
    [
        "no",
        "[]",
        '{"facts": []}',
        '{"summary": "x", "facts": {}}',
        '{"summary": "x", "facts": ["a"]}',
        '{"summary": "x", "facts": [{"text": "a", "importance": 7}]}',
    ],
)
def test_an_answer_that_stays_malformed_is_an_error(
    here: Workspace, world: Workspace, server: ChatServer, answer: str
) -> None:
    """L1: nothing is guessed from it; the session waits, with its error event."""
    server.model = follow(otherwise=answer)
    hear(here, "I prefer tea.")
    with pytest.raises(ChatMalformed):
        session.persist(here, distil=by_model(model(server)))
    assert len(server.asked) == 2
    assert facts(here) == []
    assert [e.detail["error"] for e in world.events(action="session.persist_failed")] == ["chat-malformed"]
    assert len(session.persist(here, distil=by_rules).facts) == 1


def test_an_answer_cut_at_its_limit_is_asked_for_again(here: Workspace, server: ChatServer) -> None:
    """L1: "no facts" counts only if the model came to its end with it."""
    answer = '{"summary": "They met.", "facts": []}'
    server.plan(Fault(alter=lambda said: Said(answer, finish="length")))
    server.model = follow(otherwise='{"summary": "They met at noon.", "facts": []}')
    hear(here, "I prefer tea.")
    done = session.persist(here, distil=by_model(model(server)))
    assert done.summary is not None
    assert done.summary.content.endswith("They met at noon.")
    assert "limit of tokens" in server.asked[1].said


# The refinement gate


def remembered(here: Workspace) -> None:
    here.put("workspace", "The villain is called Malachar")
    here.put("workspace", "The villain’s cook bakes bread")


def test_the_gate_leaves_out_what_does_not_belong(here: Workspace, server: ChatServer) -> None:
    """C4: one call; what it drops is neither shown nor counted, and the reason is kept."""
    remembered(here)
    seen: list[str] = []

    def gate(asked: object) -> str:
        notes = json.loads(server.asked[-1].said)["notes"]
        seen.extend(note["note"] for note in notes)
        return json.dumps([note["number"] for note in notes if "cook" in note["note"]])

    server.model = lambda asked: follow(otherwise=gate(asked))(asked)
    found = session.orient(here, "who is the villain?", refine=refine.by_model(model(server)))
    assert len(server.asked) == 1
    assert len(seen) == 2
    assert [hit.content for hit in found.hits.values()] == ["The villain is called Malachar"]
    assert "refinement gate" in found.evicted[-1].reason
    assert sorted(reads(here, entry) for entry in facts(here)) == [0, 1]


@pytest.mark.parametrize("answer", ["[]", "all are fine", "[99, true, -1]", "{}"])
def test_the_gate_accepts(here: Workspace, server: ChatServer, answer: str) -> None:
    """C4: an empty or unusable answer keeps the selection."""
    remembered(here)
    server.model = follow(otherwise=answer)
    found = session.orient(here, "who is the villain?", refine=refine.by_model(model(server)))
    assert len(found.hits) == 2


def test_a_gate_that_fails_changes_nothing(here: Workspace, server: ChatServer) -> None:
    """C4: the selection stands, and a note says that nobody looked at it."""
    remembered(here)
    server.always(status(401))
    found = session.orient(here, "who is the villain?", refine=refine.by_model(model(server)))
    assert len(found.hits) == 2
    assert "not refined" in found.notes[-1]
