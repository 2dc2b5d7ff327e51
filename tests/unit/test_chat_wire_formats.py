"""Both wire formats: what the port's words become, and what becomes of the provider's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lukasa.ports import Chat, Message, Reply, Tool, ToolCall, Usage
from lukasa.providers.chat.anthropic_chat import AnthropicChat, AnthropicReplyBuilder
from lukasa.providers.chat.anthropic_chat import request as anthropic_request
from lukasa.providers.chat.openai_chat import OpenAIChat, OpenAIReplyBuilder
from lukasa.providers.chat.openai_chat import request as openai_request
from tests.helpers import chat_server as faults
from tests.helpers.chat_server import KEY, Asked, ChatServer, Fault, Said, SaidCall, follow, when

TOOLS = [Tool("look_up", "Looks a city up.", {"type": "object"}), Tool("note", "Keeps a note.", {"type": "object"})]
OSLO = {"city": "Oslo", "days": [1, 2], "exact": {"yes": True}}
RULES = follow(
    when("both").say("Let me sée… 😀").call("look_up", OSLO).call("note", {"text": "naïve “quotes” \\ and {braces}"}),
    when("silent").call("look_up", OSLO),
    when("bare").call("note", {}),
)
both_styles = pytest.mark.parametrize("style", ["openai", "anthropic"])
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(RULES) as running:
        yield running


def opened(server: ChatServer, style: str) -> Chat:
    if style == "openai":
        return OpenAIChat(server.openai_url, "fake", KEY)
    return AnthropicChat("fake", KEY, server.url)


def ask(server: ChatServer, style: str, streamed: bool, *messages: Message) -> Reply:
    on_text = (lambda _: None) if streamed else None
    return opened(server, style).reply(messages, TOOLS, timeout=30.0, on_text=on_text)


# --- there and back ------------------------------------------------------------------------------------------


@both_styles
@both_ways
def test_text_calls_and_usage(server: ChatServer, style: str, streamed: bool) -> None:
    """U1: text, several calls with their arguments, and the token counts arrive whole in each format."""
    reply = ask(server, style, streamed, Message("user", "both"))
    assert reply.text == "Let me sée… 😀"
    assert [(call.name, call.fault) for call in reply.tool_calls] == [("look_up", ""), ("note", "")]
    assert reply.tool_calls[0].arguments == OSLO
    assert reply.tool_calls[1].arguments == {"text": "naïve “quotes” \\ and {braces}"}
    assert reply.usage == Usage(11, 7)


@both_styles
@both_ways
def test_a_call_without_words_or_arguments(server: ChatServer, style: str, streamed: bool) -> None:
    """U1: a reply may be a call alone, and a call may have no arguments."""
    reply = ask(server, style, streamed, Message("user", "bare"))
    assert reply.text == ""
    assert [(call.name, dict(call.arguments), call.fault) for call in reply.tool_calls] == [("note", {}, "")]


@both_styles
@both_ways
def test_a_whole_loop(server: ChatServer, style: str, streamed: bool) -> None:
    """U1: calls and their results go back in a form that a strict provider accepts, and end in an answer."""
    messages = [Message("system", "Be brief."), Message("user", "both")]
    first = ask(server, style, streamed, *messages)
    messages.append(Message("assistant", first.text, first.tool_calls))
    messages += [Message("tool", f"result of {call.name}", tool_call_id=call.id) for call in first.tool_calls]
    assert ask(server, style, streamed, *messages).text == "result of look_up\nresult of note"


@both_styles
def test_what_is_asked_arrives_as_it_was_meant(server: ChatServer, style: str) -> None:
    """U1: roles, contents, calls, results and tools are on the wire what they were in the port."""
    call = ToolCall("call_1", "look_up", OSLO)
    sent = [
        Message("system", "Be brief."),
        Message("user", "silent"),
        Message("assistant", "", (call,)),
        Message("tool", "cold", tool_call_id="call_1"),
        Message("assistant", "It is cold."),
        Message("user", "thanks 😀"),
    ]
    ask(server, style, False, *sent)
    asked = server.asked[0]
    assert list(asked.messages) == sent
    assert asked.tools == ("look_up", "note")
    assert asked.model == "fake"


@both_styles
def test_lone_surrogates_are_never_sent(server: ChatServer, style: str) -> None:
    """T05: text that no provider could decode is mended before it leaves."""
    ask(server, style, False, Message("user", "half \ud83d, whole \ud83d\ude00"))
    assert server.asked[0].said == "half \ufffd, whole 😀"


def test_openai_request() -> None:
    """U1: the OpenAI format, word for word."""
    messages = [
        Message("user", "hi"),
        Message("assistant", "", (ToolCall("c", "look_up", {"city": "Ås"}),)),
        Message("tool", "cold", tool_call_id="c"),
    ]
    function = {"name": "look_up", "arguments": '{"city": "Ås"}'}
    assert openai_request("m", messages, TOOLS[:1], stream=True) == {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
            {"role": "tool", "content": "cold", "tool_call_id": "c"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "look_up", "description": "Looks a city up.", "parameters": {"type": "object"}},
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_anthropic_request() -> None:
    """U1: the Anthropic format: the system apart, results side by side, turns that alternate, no blank text."""
    calls = (ToolCall("a", "look_up", {"city": "Ås"}), ToolCall("functions.note:1", "note"))
    messages = [
        Message("system", "Be brief."),
        Message("user", "hi"),
        Message("system", "And kind."),
        Message("assistant", " \n", calls),
        Message("tool", "cold", tool_call_id="a"),
        Message("tool", "", tool_call_id="functions.note:1"),
        Message("user", "well?"),
        Message("assistant", "Cold. \n"),
        Message("user", "  "),
    ]
    assert anthropic_request(messages, TOOLS[:1]) == {
        "system": "Be brief.\n\nAnd kind.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "a", "name": "look_up", "input": {"city": "Ås"}},
                    {"type": "tool_use", "id": "functions_note_1", "name": "note", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "cold"},
                    {"type": "tool_result", "tool_use_id": "functions_note_1", "content": ""},
                    {"type": "text", "text": "well?"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Cold."}]},
        ],
        "tools": [{"name": "look_up", "description": "Looks a city up.", "input_schema": {"type": "object"}}],
    }


def test_anthropic_headers(server: ChatServer) -> None:
    """U1: the key goes in Anthropic's own header, with the version of the format."""
    ask(server, "anthropic", False, Message("user", "hi"))
    headers = server.asked[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers


# --- untidy answers ------------------------------------------------------------------------------------------


@both_styles
@both_ways
@pytest.mark.parametrize(
    "fault", [faults.fenced(), faults.trailing_comma(), faults.prose()], ids=["fenced", "comma", "prose"]
)
def test_arguments_are_repaired(server: ChatServer, style: str, streamed: bool, fault: Fault) -> None:
    """T05: a fence, a comma too many or prose around it does not cost the call."""
    server.plan(fault)
    (call,) = ask(server, style, streamed, Message("user", "silent")).tool_calls
    assert (call.arguments, call.fault) == (OSLO, "")


@both_styles
@both_ways
@pytest.mark.parametrize("fault", [faults.broken_arguments(), faults.list_arguments()], ids=["broken", "list"])
def test_unreadable_arguments_are_a_fault_of_the_call(
    server: ChatServer, style: str, streamed: bool, fault: Fault
) -> None:
    """T05: arguments that cannot be read are told to whoever handles the call; nothing is raised or asked again."""
    server.plan(fault)
    (call,) = ask(server, style, streamed, Message("user", "silent")).tool_calls
    assert call.name == "look_up"
    assert call.arguments == {}
    assert call.fault
    assert len(server.asked) == 1


@both_styles
def test_an_argument_given_twice_is_a_fault(server: ChatServer, style: str) -> None:
    """T05: two values for one argument are not decided by chance."""
    server.plan(faults.repeated_argument())
    (call,) = ask(server, style, True, Message("user", "silent")).tool_calls
    assert "'same' is given twice" in call.fault


@both_styles
@both_ways
def test_thoughts_are_not_part_of_the_answer(server: ChatServer, style: str, streamed: bool) -> None:
    """T05: <think>…</think> is neither in the reply nor shown."""
    server.plan(faults.think())
    shown: list[str] = []
    on_text = shown.append if streamed else None
    reply = opened(server, style).reply([Message("user", "both")], on_text=on_text)
    assert reply.text == "Let me sée… 😀"
    assert "".join(shown) == (reply.text if streamed else "")


@both_styles
@both_ways
def test_lone_surrogates_are_replaced(server: ChatServer, style: str, streamed: bool) -> None:
    """T05: what comes back can be stored: every text of a reply encodes."""
    server.plan(faults.surrogates())
    reply = ask(server, style, streamed, Message("user", "both"))
    assert reply.text == "\ufffdLet me sée… 😀"
    assert reply.tool_calls[0].arguments["lone"] == "\ufffd!"


@both_styles
@both_ways
def test_ids_are_made_unique(server: ChatServer, style: str, streamed: bool) -> None:
    """T05: calls with the same id, or none, get ids of their own."""
    server.plan(faults.same_ids())
    first = ask(server, style, streamed, Message("user", "both")).tool_calls
    assert first[0].id == "same"
    assert first[1].id not in ("", "same")


@both_styles
def test_an_id_of_an_earlier_turn_is_not_used_again(server: ChatServer, style: str) -> None:
    """T05: a server that numbers its calls anew each turn does not confuse their results."""
    server.model = lambda asked: Said(calls=(SaidCall("0", "note", "{}"), SaidCall("", "note", "{}")))
    earlier = (Message("assistant", "", (ToolCall("0", "note"),)), Message("tool", "kept", tool_call_id="0"))
    reply = ask(server, style, False, Message("user", "x"), *earlier)
    ids = {call.id for call in reply.tool_calls}
    assert len(ids) == 2
    assert not ids & {"", "0"}


def test_a_call_without_a_name_is_a_fault(server: ChatServer) -> None:
    """T05: a call of nothing is told as such."""
    server.model = lambda asked: Said(calls=(SaidCall("c", "", "{}"),))
    (call,) = ask(server, "openai", False, Message("user", "x")).tool_calls
    assert call.fault == "the call names no tool"


@both_styles
def test_token_counts_of_the_wrong_type_are_zero(server: ChatServer, style: str) -> None:
    """T05: usage that is no number counts as not said."""
    bodies = {
        "openai": b'{"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": "9", "total": [1]}}',
        "anthropic": b'{"content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": null}}',
    }
    server.plan(faults.raw(bodies[style]))
    assert ask(server, style, False, Message("user", "x")) == Reply("hi")


# --- dialects ------------------------------------------------------------------------------------------------


def test_openai_content_in_parts() -> None:
    """T05: content as a list of parts is put together; a refusal is the model's text."""
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}, {"type": "image"}, 3]
    assert whole({"content": parts}).text == "one two"
    assert whole({"content": None, "refusal": "I will not."}).text == "I will not."


def test_openai_arguments_as_a_value() -> None:
    """T05: a server that sends arguments as an object, not as text, is understood."""
    call = {"id": "c", "function": {"name": "note", "arguments": {"text": "tea"}}}
    assert whole({"content": "", "tool_calls": [call, "junk", None]}).tool_calls == (
        ToolCall("c", "note", {"text": "tea"}),
    )


def whole(message: dict[str, object]) -> Reply:
    draft = OpenAIReplyBuilder(lambda _: None, ())
    draft.whole({"choices": [{"message": message}]})
    return draft.reply()


@pytest.mark.parametrize("index", [{"index": 0}, {}], ids=["same-index", "no-index"])
def test_openai_calls_told_apart_by_id(index: dict[str, int]) -> None:
    """T05: parallel calls that share an index, or have none, stay two calls."""
    draft = OpenAIReplyBuilder(lambda _: None, ())
    for id, text in (("a", "tea"), ("b", "milk")):
        fragment = {**index, "id": id, "function": {"name": "note", "arguments": f'{{"text": "{text}"'}}
        rest = {**index, "id": id, "function": {"arguments": "}"}}
        for piece in (fragment, rest):
            draft.event({"choices": [{"delta": {"tool_calls": [piece]}}]})
    assert [call.arguments for call in draft.reply().tool_calls] == [{"text": "tea"}, {"text": "milk"}]


def test_anthropic_counts_cached_tokens() -> None:
    """U1: tokens read from and written to the provider's cache are part of the prompt."""
    draft = AnthropicReplyBuilder(lambda _: None, ())
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 5, "output_tokens": 1}
    draft.event({"type": "message_start", "message": {"usage": usage}})
    draft.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}})
    draft.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}})
    assert draft.reply().usage == Usage(12, 9)


def test_anthropic_thinking_blocks_are_not_text() -> None:
    """T05: blocks and events of kinds we do not know are passed over."""
    draft = AnthropicReplyBuilder(lambda _: None, ())
    draft.whole({"content": [{"type": "thinking", "thinking": "hm"}, 5, {"type": "text", "text": "hi"}]})
    draft.event({"type": "content_block_delta", "index": 7, "delta": {"type": "thinking_delta", "thinking": "hm"}})
    draft.event({"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta", "partial_json": "{"}})
    draft.event({"type": "of tomorrow"})
    assert draft.reply() == Reply("hi")


# --- the helper itself ---------------------------------------------------------------------------------------


def test_the_fake_provider_is_strict(server: ChatServer) -> None:
    """The helper refuses what a real provider refuses: here a result whose call is missing."""
    from lukasa.model.errors import ChatRefused

    for style in ("openai", "anthropic"):
        with pytest.raises(ChatRefused, match="without its call"):
            ask(server, style, False, Message("user", "x"), Message("tool", "cold", tool_call_id="none"))


def test_a_failing_model_function_is_not_hidden() -> None:
    """The helper raises what a test's own model function raised."""

    def model(_: Asked) -> Reply:
        raise LookupError("the test's own mistake")

    def run() -> None:
        with ChatServer(model) as server, pytest.raises(Exception, match="connection"):
            OpenAIChat(server.openai_url, "fake").reply([Message("user", "x")], timeout=30.0)

    with pytest.raises(LookupError, match="own mistake"):
        run()
