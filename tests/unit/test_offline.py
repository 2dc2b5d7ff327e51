"""The offline responder: what it understands, what it calls, what it says, and what it never invents (L3, C3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lukasa.model.requests import forgetting, request
from lukasa.ports import Message, Tool, ToolCall
from lukasa.providers.chat.offline import HEARD, NOTHING, OfflineChat

NAMES = ("memory_put", "memory_read", "memory_update", "memory_forget", "note_write", "note_read")
TOOLS = [Tool(name, "", {"type": "object"}) for name in NAMES]


def ask(said: str, *results: Mapping[str, Any], tools: list[Tool] = TOOLS) -> tuple[str, list[ToolCall]]:
    """One turn: each result answers the call that was made. Gives the final text, or "" if a call waits."""
    messages = [Message("system", "context"), Message("user", said)]
    calls: list[ToolCall] = []
    waiting = list(results)
    while True:
        reply = OfflineChat().reply(messages, tools)
        calls.extend(reply.tool_calls)
        if not reply.tool_calls or not waiting:
            return reply.text, calls
        (call,) = reply.tool_calls
        messages.append(Message("assistant", "", (call,)))
        messages.append(Message("tool", json.dumps(waiting.pop(0)), tool_call_id=call.id))


def hit(content: str, **more: Any) -> dict[str, Any]:
    return {"id": "1", "content": content, "recorded": "2026-11-15", "source": "user", "tier": "workspace", **more}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Remember that the sky is green", {"content": "the sky is green"}),
        ("please note that the sky is green.", {"content": "the sky is green."}),
        ("Keep in mind: the sky is green", {"content": "the sky is green"}),
        ("Don’t forget that the sky is green", {"content": "the sky is green"}),
        ("Remember that I like tea, at the account level.", {"content": "I like tea", "tier": "account"}),
        ("Remember for all my workspaces: I like tea", {"content": "I like tea", "tier": "account"}),
        ("Remember this for this channel only: be brief", {"content": "be brief", "tier": "channel"}),
        ("Remember that it is late — workspace scope only.", {"content": "it is late", "tier": "workspace"}),
        (
            "Keep in mind for this conversation that we are tired",
            {"content": "we are tired", "tier": "conversation", "lifetime": "conversation"},
        ),
        ("Remind me short-term: call Ada", {"content": "call Ada", "lifetime": "short_term"}),
        ("Remember permanently: she was a scholar.", {"content": "she was a scholar.", "lifetime": "long_term"}),
        ("Note: this is my desk", {"content": "this is my desk"}),
        ("Remember that this is my desk", {"content": "this is my desk"}),
        ("Remember this is my desk", {"content": "this is my desk"}),
        ("Note: in this channel only Ada decides", {"content": "in this channel only Ada decides"}),
        ("Remember: -4 degrees is too cold", {"content": "-4 degrees is too cold"}),
        ("Remember that iPad chargers are white", {"content": "iPad chargers are white"}),
        ("Remember that my mark was C-", {"content": "my mark was C-"}),
        ("Remember that Ada keeps 90 crowns in my account", {"content": "Ada keeps 90 crowns in my account"}),
        ("Make a note of the tide tables", {"content": "the tide tables"}),
        ("Note this down: the inn is shut", {"content": "the inn is shut"}),
        ("Remember privately: it is done.", {"content": "it is done.", "private": True}),
        ("Remember only for you: it is done.", {"content": "it is done.", "private": True}),
        ("Remember, low priority: check the fonts", {"content": "check the fonts", "importance": 0.1}),
        ("Remember, this is very important: no spoilers", {"content": "no spoilers", "importance": 0.9}),
    ],
)
def test_requests_to_remember(said: str, expected: Mapping[str, Any]) -> None:
    """L3: how far, how long, for whom and how much, taken out of the statement."""
    _, (call,) = ask(said)
    assert (call.name, dict(call.arguments)) == ("memory_put", {"said_by": "user", **expected})


@pytest.mark.parametrize(
    "said",
    ["He left her permanently", "The treaty is very important.", "They met in this conversation hall"],
)
def test_words_about_the_world_stay_in_the_statement(said: str) -> None:
    """L3: a word that could describe the note is part of the fact unless a mark sets it apart."""
    asked = request(f"Remember that {said}")
    assert asked is not None
    assert (asked.content, asked.lifetime, asked.importance, asked.reach) == (said, None, None, "")


@pytest.mark.parametrize(
    "said", ["Do you remember me?", "Remember when we met?", "Remind me who she is", "Note the colour", "I remember it"]
)
def test_what_is_no_request(said: str) -> None:
    """W1: nothing is stored that nobody asked to store."""
    assert request(said) is None


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"outcome": "stored", "tier": "workspace"}, "I’ll remember that: “the sky is green”"),
        ({"outcome": "merged", "tier": "workspace"}, "I had that noted already"),
        ({"outcome": "replaced", "tier": "account"}, "in place of what I had noted before"),
        ({"outcome": "held", "reason": "it contradicts"}, "set that aside for you to decide"),
        ({"outcome": "discarded", "reason": "too short"}, "I did not store that: too short."),
        ({"error": {"message": "the disk is full"}}, "I could not store that: the disk is full."),
    ],
)
def test_it_says_what_became_of_a_write(result: Mapping[str, Any], told: str) -> None:
    """L3: no success is claimed that was not one."""
    assert told in ask("Remember that the sky is green", result)[0]


def test_recall_quotes_with_its_date() -> None:
    """C3: noted then, by whom, in its own words; never a flat assertion."""
    text, (call,) = ask("What colour is the sky?", {"hits": [hit("The sky is green")]})
    assert dict(call.arguments) == {"query": "What colour is the sky?"}
    assert text == "You noted on 2026-11-15: “The sky is green”"
    text, _ = ask("What colour is the sky?", {"hits": [hit("The sky is green", source="scout")]})
    assert text == "Noted on 2026-11-15 by scout: “The sky is green”"
    text, _ = ask("What colour is the sky?", {"hits": [hit("The sky is green", authority="none")]})
    assert text.startswith("Text of unknown authorship")


@pytest.mark.parametrize(
    "found",
    [
        [],
        [hit("The hero is called Elarindë", near=False)],
        [hit("The villain lives in a tower", near=True)],
        [hit("Asked about the villain Malachar", tags=["conversation-summary"])],
    ],
)
def test_it_never_invents(found: list[dict[str, Any]]) -> None:
    """L3, C3: what was found but is not about the question, or not about the one it names, is no answer."""
    assert ask("Do you know a villain named Malachar?", {"hits": found})[0] == NOTHING


def test_nearness_in_meaning_is_enough() -> None:
    """R1: without a shared word, a clearly near memory is quoted and a vaguely near one is not."""
    assert "Ilse" in ask("Who is my spouse?", {"hits": [hit("I am married to Ilse", near=True)]})[0]
    assert ask("Who is my spouse?", {"hits": [hit("I am married to Ilse", near=False)]})[0] == NOTHING


def test_summaries_answer_only_what_is_asked_of_them() -> None:
    """L1: “last time” is about conversations; other questions are not."""
    found = {"hits": [hit("2026-11-14, conversation abc, 2 exchanges.", tags=["conversation-summary"])]}
    assert "2 exchanges" in ask("Where did we leave off last time?", found)[0]
    assert ask("How many exchanges were there in conversation abc?", {"notes": {}}, found)[0] == NOTHING


def test_counting() -> None:
    """§14.9: the note is read, the sum written, and said; a fresh count replaces an old one."""
    text, calls = ask("I just wrote two more pages. How many pages are that?", {"notes": {"pages wrote": 3}}, {})
    assert "5 pages" in text
    assert [(c.name, dict(c.arguments)) for c in calls][-1] == ("note_write", {"key": "pages wrote", "value": 5})
    text, calls = ask("Keep track of this: I have edited 7 pages", {"notes": {"pages edited": 3}}, {})
    assert dict(calls[-1].arguments) == {"key": "pages edited", "value": 7}
    assert "4 lines" in ask("I deleted 4 more lines, how many now?", {"notes": {"pages edited": 3}}, {})[0]


def test_forgetting_asks_first() -> None:
    """L3: everything that matches is named, and nothing is forgotten before the user agrees."""
    found = {"hits": [hit("The sky is green"), hit("The sky is green at night", id="2"), hit("Ada sings", id="3")]}
    text, calls = ask("Forget that the sky is green", found)
    assert [call.name for call in calls] == ["memory_read"]
    assert "1. You noted on 2026-11-15: “The sky is green”" in text
    assert "2. You noted on 2026-11-15: “The sky is green at night”" in text
    assert "Ada" not in text
    assert text.endswith("Shall I forget all of them? Answer yes, no, or with the numbers to forget.")
    text, calls = ask("Forget that the sky is green", {"hits": [hit("The hero is called Ada")]})
    assert (text, len(calls)) == ("I found nothing like that to forget.", 1)
    assert ask("Forget it")[1] == []
    assert forgetting("I never forget") is None


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ("Yes, please.", ["1", "2"]),
        ("ja", ["1", "2"]),
        ("Only the second one", ["2"]),
        ("1", ["1"]),
        ("No, keep them.", []),
        ("nein", []),
        ("9", []),
    ],
)
def test_it_forgets_what_was_agreed(said: str, ids: list[str]) -> None:
    """L3: yes for all, a number for one, no for none."""
    found = {"hits": [hit("The sky is green"), hit("The sky is green at night", id="2")]}
    request_to_forget = "Please forget what I told you about the green sky"
    question, (read,) = ask(request_to_forget, found)
    before = [
        Message("user", request_to_forget),
        Message("assistant", "", (read,)),
        Message("tool", json.dumps(found), tool_call_id=read.id),
        Message("assistant", question),
    ]
    reply = OfflineChat().reply([*before, Message("user", said)], TOOLS)
    assert [call.arguments["id"] for call in reply.tool_calls] == ids
    assert reply.text == ("" if ids else "I have forgotten nothing.")


def test_a_number_in_what_is_to_be_forgotten_is_not_counted() -> None:
    """L3: a request to forget reads memory, whatever it says about numbers."""
    text, calls = ask("Forget that I edited 2 more pages", {"hits": [hit("I edited 2 more pages")]})
    assert [call.name for call in calls] == ["memory_read"]
    assert "Shall I forget it?" in text


def test_a_summary_that_tells_it_is_named_too() -> None:
    """L3: a summary that repeats the fact would keep it: the request concerns it."""
    told = hit("2026-11-14, 2 exchanges. Remembered: “The sky is green”.", id="2", tags=["conversation-summary"])
    text, _ = ask("Forget that the sky is green", {"hits": [hit("The sky is green"), told]})
    assert "I found 2 entries" in text


def test_small_talk_stores_nothing() -> None:
    """W1: a statement without a request is not stored, and that is said."""
    assert ask("The duel was fun to write.") == (HEARD, [])
    assert ask("Hello!")[0].startswith("Hello.")
    assert ask("Remember") == ("What should I remember?", [])


def test_without_tools_it_says_so() -> None:
    """L3: it asks only for tools it was given."""
    assert ask("Remember that the sky is green", tools=[]) == ("I cannot do that here: I was given no tool for it.", [])


def test_it_streams_words() -> None:
    """L3: the parts are the reply."""
    parts: list[str] = []
    reply = OfflineChat().reply([Message("user", "The duel was fun.")], on_text=parts.append)
    assert len(parts) > 5
    assert "".join(parts) == reply.text


@given(st.text(max_size=200), st.one_of(st.text(max_size=50), st.just("{}"), st.just('{"hits": [1, {}], "notes": 3}')))
def test_it_answers_anything(said: str, result: str) -> None:
    """L3: whatever is said and whatever a tool returns, there is a reply within a few steps, and no error."""
    messages = [Message("user", said)]
    for _ in range(5):
        reply = OfflineChat().reply(messages, TOOLS)
        if not reply.tool_calls:
            assert reply.text
            return
        messages.append(Message("assistant", "", reply.tool_calls))
        messages.extend(Message("tool", result, tool_call_id=call.id) for call in reply.tool_calls)
    pytest.fail("it never came to an end")
