"""The reference agent with a provider behind it, and `lukasa chat` (L3, U2, §14)."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from lukasa import Lukasa, Workspace
from lukasa.langgraph import context_node, memory_tools, persist_node
from lukasa.model.errors import ChatRefused, InvalidContent, InvalidInput, StoreError
from lukasa.ports import Chat, Reply, ToolCall
from lukasa.providers.chat import open_chat
from lukasa.service.sessions import session
from lukasa.spec import preset_text
from lukasa.surfaces.langgraph.graph import ROUNDS, Agent
from tests.helpers.chat_server import Asked, ChatServer, broken_arguments, cut, follow, hold, reset, status, when
from tests.helpers.cli import COMMAND, ROOT, Shell
from tests.helpers.talk import agent, facts, reads


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture(params=["openai:fake", "anthropic:fake"])
def chat(request: pytest.FixtureRequest, server: ChatServer) -> Chat:
    opened = open_chat(request.param, server.env)
    assert opened is not None
    return opened


# The planner is a model


def test_the_model_sees_memory_as_evidence(memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat) -> None:
    """L3, C3: the context is in the system prompt, quoted; the tools are offered."""
    world.put("workspace", "The villain is called Malachar")
    with agent(memory, world, chat=chat) as talk:
        talk.turn("Who is the villain?")
    asked = server.asked[0]
    assert "> The villain is called Malachar" in asked.system
    assert asked.said == "Who is the villain?"
    assert set(asked.tools) == {
        "memory_put", "memory_read", "memory_update", "memory_forget", "note_write", "note_read",
        "corpus_search", "corpus_read", "corpus_submit",
    }  # fmt: skip


def test_what_always_holds_is_the_same_bytes_each_turn(
    memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat
) -> None:
    """B7: pages and rules come first and do not change with the question, so that a provider's cache can keep them."""
    world.put("workspace", "Always answer in British English", kind="procedural", importance=0.9)
    world.put("workspace", "The villain is called Malachar")
    world.put("workspace", "The staging server is db-7")
    with agent(memory, world, chat=chat) as talk:
        talk.turn("who is the villain?")
        talk.turn("which staging server?")
    bodies = [asked.sent for asked in server.asked]
    if chat.name.startswith("anthropic"):
        stable = [body["system"][0] for body in bodies]
        assert stable[0]["cache_control"] == {"type": "ephemeral"}
        assert [list(block) for body in bodies for block in body["system"][1:]] == [["type", "text"]] * 2
        kept, whole = stable[0]["text"], ["".join(b["text"] for b in body["system"]) for body in bodies]
        assert stable[0] == stable[1]
    else:
        whole = [body["messages"][0]["content"] for body in bodies]
        assert [[m["role"] for m in body["messages"]].count("system") for body in bodies] == [1, 1]
        kept = whole[0].split("## Recalled")[0]
    assert "British English" in kept
    assert "Malachar" not in kept
    assert all(text.startswith(kept) for text in whole)
    assert whole[0] != whole[1]


def test_nothing_is_written_unless_the_model_decides(
    memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat
) -> None:
    """W1, L3: talk alone stores nothing; a call of the tool does, as the agent."""
    server.model = follow(when("Vey").call("memory_put", {"content": "The ship is called Vey", "importance": 0.7}))
    with agent(memory, world, chat=chat) as talk:
        assert talk.turn("A lovely morning at sea").reply == "ok"
        assert facts(world) == []
        answer = talk.turn("Her ship is the Vey")
    assert [call.name for call in answer.calls] == ["memory_put"]
    (entry,) = facts(world)
    assert (entry.content, entry.importance, entry.curator, entry.source) == (
        "The ship is called Vey", 0.7, "agent", "assistant",
    )  # fmt: skip


def test_a_tool_read_after_the_context_counts_once(
    memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat
) -> None:
    """D6: shown by the context and found by the tool in one turn: one retrieval. The next turn is another."""
    entry = world.put("workspace", "The villain is called Malachar").entry
    assert entry is not None
    server.model = follow(when("villain").call("memory_read", {"query": "villain"}))
    with agent(memory, world, chat=chat) as talk:
        assert "Malachar" in talk.turn("Who is the villain?").reply
        assert reads(world, entry) == 1
        talk.turn("The villain again?")
        assert reads(world, entry) == 2


def test_a_wrong_call_is_answered_with_what_to_change(
    memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat
) -> None:
    """L3, W9: unknown arguments, tiers, types, tools and ids come back as typed errors, and nothing is written."""
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("memory_put", {}),
        ("memory_put", {"content": 7}),
        ("memory_put", {"content": "A proper statement here", "tier": "attic"}),
        ("memory_put", {"content": "A proper statement here", "importance": 7}),
        ("memory_put", {"content": "A proper statement here", "colour": "red"}),
        ("memory_forget", {"id": "01a1e1bf-8e8f-7c44-9d82-37fb6b6b1339"}),
        ("note_write", {"key": "session:open", "value": 1}),
        ("launch", {}),
    ]
    calls = tuple(ToolCall(f"c{i}", name, given) for i, (name, given) in enumerate(wrong))
    server.model = lambda asked: Reply("done") if asked.results else Reply("", calls)
    with agent(memory, world, chat=chat) as talk:
        answer = talk.turn("Do it all wrong")
    errors = [json.loads(call.result)["error"] for call in answer.calls]
    assert len(errors) == len(wrong)
    assert all(error["message"] and error["fix"] for error in errors)
    assert facts(world) == []


def test_malformed_arguments_are_repaired(memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat) -> None:
    """L3: what cannot be read is answered once with what to fix; the second call is carried out."""
    put = ToolCall("c1", "memory_put", {"content": "The ship is called Vey"})

    def model(asked: Asked) -> Reply:
        return Reply("noted") if asked.results and "error" not in asked.results[0] else Reply("", (put,))

    server.model = model
    server.plan(broken_arguments())
    with agent(memory, world, chat=chat) as talk:
        answer = talk.turn("Her ship is the Vey")
    assert answer.reply == "noted"
    assert "could not be read" in answer.calls[0].result
    assert "JSON object" in answer.calls[0].result
    assert [entry.content for entry in facts(world)] == ["The ship is called Vey"]


def test_malformed_arguments_are_refused_the_second_time(
    memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat
) -> None:
    """L3: a model that cannot write JSON is told to go on without."""
    put = ToolCall("c1", "memory_put", {"content": "The ship is called Vey"})

    def model(asked: Asked) -> Reply:
        return Reply("I could not note it") if "refused" in "".join(asked.results) else Reply("", (put,))

    server.model = model
    server.plan(broken_arguments(), broken_arguments())
    with agent(memory, world, chat=chat) as talk:
        answer = talk.turn("Her ship is the Vey")
    assert answer.reply == "I could not note it"
    assert [json.loads(call.result)["error"]["code"] for call in answer.calls] == ["invalid-input", "refused"]
    assert facts(world) == []


def test_the_rounds_are_bounded(memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat) -> None:
    """L3: a model that never stops calling is asked a last time, without tools."""

    def model(asked: Asked) -> Reply:
        return Reply("", (ToolCall(f"c{len(asked.messages)}", "note_read", {}),)) if asked.tools else Reply("enough")

    server.model = model
    with agent(memory, world, chat=chat) as talk:
        answer = talk.turn("Look it up")
    assert (answer.reply, len(answer.calls), len(server.asked)) == ("enough", ROUNDS, ROUNDS + 1)


def test_the_reply_streams(memory: Lukasa, world: Workspace, server: ChatServer, chat: Chat) -> None:
    """L3: text arrives in parts, and the parts are the reply."""
    server.model = follow(otherwise="Nobody has told me about her ship yet, so I do not know.")
    parts: list[str] = []
    with agent(memory, world, chat=chat) as talk:
        answer = talk.turn("What is her ship called?", parts.append)
    assert len(parts) > 3
    assert "".join(parts) == answer.reply


# Failure


@pytest.mark.parametrize(
    "fault", [status(401), status(400), reset(times=9), cut(after=2, times=9), status(500, times=9)]
)
def test_a_failing_provider_never_loses_the_message(
    memory: Lukasa, world: Workspace, server: ChatServer, fault: Any
) -> None:
    """L1, L3: the words are kept, the user is told plainly, and the same turn can be tried again, once."""
    chat = open_chat("openai:fake", server.env)
    server.always(fault)
    with agent(memory, world, chat=chat) as talk:
        answer = talk.turn("Remember that the ship is called Vey.")
        assert answer.error is not None
        assert answer.reply.startswith("The model gave no answer: ")
        assert [turn.text for turn in session.turns(talk.world)] == ["Remember that the ship is called Vey."]
        server.always(None)
        server.model = follow(when("Vey").call("memory_put", {"content": "The ship is called Vey"}))
        assert talk.retry().error is None
        assert [turn.role for turn in session.turns(talk.world)] == ["user", "assistant"]
    assert [entry.content for entry in facts(world)] == ["The ship is called Vey"]


def test_a_slow_provider_is_given_up(memory: Lukasa, world: Workspace, server: ChatServer) -> None:
    """L3: no answer in time is a failure like any other."""
    server.always(hold())
    with agent(memory, world, chat=open_chat("openai:fake", server.env), timeout=0.2) as talk:
        answer = talk.turn("Remember that the ship is called Vey.")
        assert answer.error is not None
        assert answer.error.code == "chat-unavailable"
        assert len(session.turns(talk.world)) == 1
        server.release.set()


def test_what_no_model_answered_is_written_at_the_end(memory: Lukasa, world: Workspace, server: ChatServer) -> None:
    """L1: the provider stays away; Persist still finds what was asked."""
    server.always(status(401))
    with agent(memory, world, chat=open_chat("openai:fake", server.env)) as talk:
        talk.turn("Remember that the ship is called Vey.")
        talk.end()
    assert [(e.content, e.source) for e in facts(world)] == [("the ship is called Vey.", "persist")]


def test_after_a_failure_the_next_message_is_answered(memory: Lukasa, world: Workspace, server: ChatServer) -> None:
    """L3: a turn that failed does not block the conversation; both messages are seen."""
    server.plan(status(401))
    with agent(memory, world, chat=open_chat("openai:fake", server.env)) as talk:
        assert isinstance(talk.turn("First").error, ChatRefused)
        assert talk.turn("Second").reply == "ok"
    assert [m.content for m in server.asked[-1].messages if m.role == "user"] == ["First", "Second"]


def test_a_killed_process_leaves_its_words(tmp_path: Path, server: ChatServer) -> None:
    """L1: kill -9 while the model thinks; the next session writes down what was said."""
    shell = Shell(tmp_path / "data")
    server.always(hold())
    env = shell.environment(LUKASA_CHAT="openai:fake", **server.env)
    process = subprocess.Popen([*COMMAND, "chat", "Remember that the ship is called Vey."], env=env)
    assert server.holding.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    server.release.set()
    shell.run("chat", "Hello")
    assert [e["content"] for e in shell.json("list")["entries"]] == ["the ship is called Vey."]


def test_a_question_in_other_words(memory: Lukasa, world: Workspace) -> None:
    """R1, L3: with an embedder a synonym is enough; without one, the agent says that it knows nothing."""
    world.put("workspace", "The villain is called Malachar")
    with agent(memory, world) as talk:
        reply = talk.turn("What is the antagonist called?").reply
    assert ("Malachar" in reply) is (world.ctx.embedder is not None)
    assert ("I don't know" in reply) is (world.ctx.embedder is None)


# State and files


def test_checkpoints_are_apart_and_private(memory: Lukasa, world: Workspace) -> None:
    """L3: a file of its own, of mode 0600, and no table of it among the memory's."""
    with agent(memory, world) as talk:
        talk.turn("Remember that the ship is called Vey.")
        folder = memory.folder(world)
        assert folder is not None
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes["checkpoints.db"] == 0o600
        assert set(modes.values()) == {0o600}
    assert world.check() == []


def test_a_conversation_is_taken_up_where_it_was(memory: Lukasa, world: Workspace, server: ChatServer) -> None:
    """L3: another agent object, the same conversation: the model sees what was said before."""
    chat = open_chat("openai:fake", server.env)
    with agent(memory, world, chat=chat) as talk:
        talk.turn("My ship is the Vey")
        talk.leave()
        ref = talk.conversation.ref_code
    with agent(memory, world, chat=chat, resume=ref) as again:
        again.turn("And now?")
    assert [m.content for m in server.asked[-1].messages[1:]] == ["My ship is the Vey", "ok", "And now?"]


def test_a_spec_without_a_checkpointer_keeps_no_file(memory: Lukasa, server: ChatServer) -> None:
    """L3: with `checkpointer = "none"` a resumed thread starts from memory alone, and there is no file of messages."""
    spec = preset_text("default").replace('checkpointer = "separate-file"', 'checkpointer = "none"')
    world, chat = memory.workspace("bare", spec=spec), open_chat("openai:fake", server.env)
    with agent(memory, world, chat=chat) as talk:
        talk.turn("My ship is the Vey")
        talk.leave()
        ref = talk.conversation.ref_code
    folder = memory.folder(world)
    assert folder is not None
    assert not (folder / "checkpoints.db").exists()
    with agent(memory, world, chat=chat, resume=ref) as again:
        with pytest.raises(InvalidInput):
            again.retry()
        again.turn("And now?")
        again.end()
    assert [m.content for m in server.asked[-1].messages if m.role == "user"] == ["And now?"]
    assert not (folder / "checkpoints.db").exists()


def test_a_conversation_has_one_leader(memory: Lukasa, world: Workspace) -> None:
    """L3: it cannot be taken up twice at once; when its leader is gone it can."""
    threads = memory.threads(world)
    assert threads is not None
    with agent(memory, world) as talk:
        assert threads.led(talk.conversation)
        with pytest.raises(StoreError, match="another process"), agent(memory, world, resume=talk.conversation.id):
            pass
        talk.leave()
    assert not threads.led(talk.conversation)


def test_memory_without_files(server: ChatServer) -> None:
    """L3: in memory, the checkpoints are too."""
    with Lukasa.open(in_memory=True, embedder="none") as memory:
        world = memory.workspace("novel")
        with agent(memory, world) as talk:
            talk.turn("Remember that the ship is called Vey.")
            talk.end()
        assert [entry.content for entry in facts(world)] == ["the ship is called Vey."]


@pytest.mark.parametrize("message", ["", "  ", "x" * 20_001, "a \x00 b", "lone \ud800"])
def test_unusable_messages(memory: Lukasa, world: Workspace, message: str) -> None:
    """W9: refused with what to change, before anything is recorded."""
    with agent(memory, world) as talk:
        with pytest.raises(InvalidContent):
            talk.turn(message)
        assert session.turns(talk.world) == []


# Nodes and tools in a graph of one's own


class Mine(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_of(world: Workspace, **options: Any) -> Any:
    def model(state: Mine) -> dict[str, Any]:
        return {"messages": [AIMessage(f"heard {len(state['messages'])}")]}

    graph = StateGraph(Mine)
    graph.add_node("context", context_node(world, **options))
    graph.add_node("model", model)
    graph.add_edge(START, "context")
    graph.add_edge("context", "model")
    graph.add_edge("model", END)
    return graph.compile()


def test_the_context_node_leads_with_one_system_message(world: Workspace) -> None:
    """L3, C1: first in the list, renewed in place on later turns."""
    world.put("workspace", "The villain is called Malachar")
    graph = graph_of(world)
    state = graph.invoke({"messages": [HumanMessage("Who is the villain?")]})
    assert [m.type for m in state["messages"]] == ["system", "human", "ai"]
    assert "Malachar" in state["messages"][0].text
    state = graph.invoke({"messages": [*state["messages"], HumanMessage("And the weather?")]})
    assert [m.type for m in state["messages"]] == ["system", "human", "ai", "human", "ai"]


def test_a_subagents_node_reads_its_tiers(world: Workspace) -> None:
    """C5: tiers that are not named are not in the document."""
    world.put("workspace", "The villain is called Malachar")
    state = graph_of(world, tiers=("account",)).invoke({"messages": [HumanMessage("Who is the villain?")]})
    assert isinstance(state["messages"][0], SystemMessage)
    assert "Malachar" not in state["messages"][0].text


def test_the_persist_node_ends_the_session(world: Workspace) -> None:
    """L1, L3: what the messages of any graph say is distilled, summarised, and the conversation ends."""
    here = session.begin(world.acting(agent="mine"))
    said = [SystemMessage("I prefer poison"), HumanMessage("I prefer tea."), AIMessage("I prefer coffee.")]
    assert persist_node(here)({"messages": said}) == {}
    assert [entry.content for entry in facts(world)] == ["I prefer tea."]
    assert session.current(here).status == "idle"


def test_the_tools_work_in_langchain(world: Workspace) -> None:
    """L3, U6: put, read, update, forget and the notes, as LangChain tools; errors are answers."""
    here = session.begin(world.acting(agent="mine"))
    tools = {tool.name: tool for tool in memory_tools(here)}
    made = json.loads(tools["memory_put"].invoke({"content": "The villain is called Malachar", "private": True}))
    assert (made["outcome"], world.get(made["id"]).owner) == ("stored", "mine")
    (hit,) = json.loads(tools["memory_read"].invoke({"query": "villain"}))["hits"]
    assert (hit["id"], hit["authority"]) == (made["id"], "inform")
    assert json.loads(tools["memory_update"].invoke({"id": made["id"], "importance": 0.9}))["outcome"] == "updated"
    assert json.loads(tools["memory_forget"].invoke({"id": made["id"]}))["outcome"] == "forgotten"
    tools["note_write"].invoke({"key": "pages", "value": {"edited": 3}})
    assert json.loads(tools["note_read"].invoke({}))["notes"] == {"pages": {"edited": 3}}
    assert json.loads(tools["note_read"].invoke({"key": "none"}))["notes"] == {}
    assert json.loads(tools["memory_update"].invoke({"id": "x"}))["error"]["code"] == "invalid-input"


def test_only_an_agent_has_private_memory(world: Workspace) -> None:
    """M4: the author's own handle cannot own privately."""
    tools = {tool.name: tool for tool in memory_tools(world)}
    answer = json.loads(tools["memory_put"].invoke({"content": "The villain is called Malachar", "private": True}))
    assert answer["error"]["code"] == "invalid-input"


# The command


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"})


def test_one_message(shell: Shell) -> None:
    """U2, L3: a conversation of its own, ended at the exit; the answer as a document, with the calls."""
    told = shell.json("chat", "Remember that the ship is called Vey")
    assert told["reply"].startswith("I’ll remember that")
    assert [call["name"] for call in told["tool_calls"]] == ["memory_put"]
    assert told["model"] == "offline"
    assert told["conversation"] in told["persisted"]["summary"]
    assert "Vey" in shell.run("chat", "What is the ship called?")
    assert {c["status"] for c in shell.json("conversation", "list")["conversations"]} == {"idle"}


def test_lines_of_stdin_are_turns(shell: Shell) -> None:
    """U2: one conversation, one turn a line; blank lines say nothing."""
    first, second = "Keep track of this: I have edited 3 pages", "I edited 2 more pages. How many is that?"
    told = shell.json("chat", input=f"{first}\n\n{second}\n")
    assert [turn["message"] for turn in told["turns"]] == [first, second]
    assert "5 pages" in told["reply"]


def test_recalled_escape_codes_are_harmless(shell: Shell) -> None:
    """T56: a memory that is quoted in a reply cannot drive the terminal."""
    shell.put("The ship \x1b]0;owned\x07 is called Vey")
    told = shell.run("chat", input="What is the ship called?\n/context\n")
    assert "is called Vey" in told
    assert "\x1b" not in told
    assert "\x07" not in told


def test_keep_resume_and_end(shell: Shell) -> None:
    """U2: --keep leaves it open, --resume goes on with it, /end ends it; then it cannot be resumed."""
    ref = shell.json("chat", "Keep track of this: I have edited 3 pages", "--keep")["conversation"]
    told = shell.json("chat", "--resume", "last", "I edited 2 more pages. How many is that?")
    assert (told["conversation"], told["persisted"]) == (ref, None)
    assert "5 pages" in told["reply"]
    assert shell.json("chat", "--conversation", ref, "/end")["persisted"] is not None
    assert shell.fails("chat", "--resume", ref, "Hello", code=1)["code"] == "invalid-transition"
    assert shell.fails("chat", "--resume", "last", "Hello", code=1)["code"] == "not-found"


def test_forgetting_needs_a_yes(shell: Shell) -> None:
    """L3: the reply names what it found and asks; nothing is gone before the yes, also in the next call."""
    shell.put("The ship is called Vey")
    shell.put("The ship Vey leaks")
    asked = shell.json("chat", "Please forget everything about the ship Vey", "--keep")["reply"]
    assert "The ship is called Vey" in asked
    assert "The ship Vey leaks" in asked
    assert len(shell.json("list")["entries"]) == 2
    told = shell.json("chat", "--resume", "last", "Yes, both.")
    assert [call["name"] for call in told["tool_calls"]] == ["memory_forget", "memory_forget"]
    assert shell.json("list")["entries"] == []
    shell.run("chat", "--resume", "last", "/end")
    assert shell.json("list")["entries"] == []


def test_a_no_keeps_everything(shell: Shell) -> None:
    """L3: nothing is forgotten without agreement."""
    shell.put("The ship is called Vey")
    told = shell.json("chat", input="Forget that the ship is called Vey\nNo, don't.\n")
    assert told["reply"] == "I have forgotten nothing."
    assert len(shell.json("list")["entries"]) == 1


def test_it_never_denies_what_it_stores_at_the_end(shell: Shell) -> None:
    """L3: a plain statement may be kept at the end: the reply says so, and the end counts what happened to it."""
    told = shell.json("chat", "I prefer tea over coffee.")
    assert "not stored" not in told["reply"]
    assert "When this conversation ends" in told["reply"]
    assert [fact["outcome"] for fact in told["persisted"]["facts"]] == ["stored"]
    assert "facts found at the end: 1 stored" in shell.run("chat", "We decided to ship in March.")
    assert "facts found at the end: nothing more to store" in shell.run("chat", "Hello")


@pytest.mark.parametrize(
    "said",
    [
        ("I prefer tea over coffee.", "Forget that I prefer tea."),
        ("I prefer tea over coffee.", "Please don't remember that."),
        ("I prefer tea over coffee. Please don't store that.",),
        ("I prefer tea over coffee, but that is for this chat only.",),
    ],
)
def test_what_was_taken_back_is_not_stored_at_the_end(shell: Shell, said: tuple[str, ...]) -> None:
    """L1: the end of a session keeps no statement that the user did not want kept."""
    shell.run("chat", input="".join(f"{line}\n" for line in said))
    assert shell.json("list")["entries"] == []


def test_a_request_may_follow_its_statement(shell: Shell) -> None:
    """L3: "please remember that" alone is about the message before, word for word."""
    told = shell.json("chat", input="My aunt Ilse keeps bees\nPlease remember that for all my projects.\n")
    assert told["reply"].startswith("I’ll remember that: “My aunt Ilse keeps bees” (for all your workspaces")
    assert [e["content"] for e in shell.json("list", "--tier", "account")["entries"]] == ["My aunt Ilse keeps bees"]


def test_totals_come_only_from_what_was_counted(shell: Shell) -> None:
    """L3: other things, other verbs and uncounted beginnings are not added up."""
    said = ["Keep track of this: I have edited 3 pages", "I read 2 more pages. How many pages have I read?"]
    told = shell.json("chat", input="\n".join(said))
    assert "5" not in told["reply"]
    assert "no count of it before" in told["reply"]


def test_why_and_context(shell: Shell) -> None:
    """U2, R8: what the model was given, and why each line of it."""
    shell.put("The ship is called Vey")
    told = shell.run("chat", input="/why\nWhat is the ship called?\n/why\n/context\n/help\n")
    assert told.startswith("Nothing was said yet.")
    assert "matched by keyword" in told
    assert "> The ship is called Vey" in told
    assert "/leave" in told


def test_an_agent_of_another_name(shell: Shell) -> None:
    """M4: --agent leads the talk under that name, with its own private memory."""
    shell.run("chat", "--agent", "scout", "Remember privately: the pass is snowed in.")
    assert [e["owner"] for e in shell.json("list")["entries"]] == ["scout"]
    assert "snowed" not in shell.run("chat", "Is the pass snowed in?")
    assert "snowed in" in shell.run("chat", "--agent", "scout", "Is the pass snowed in?")


def test_a_provider_that_fails(shell: Shell, server: ChatServer) -> None:
    """L3: exit code 1, the message kept, and a way to try again that answers it."""
    shell.env |= {"LUKASA_CHAT": "openai:fake", **server.env}
    server.always(status(401))
    told = shell.json("chat", "Who is the villain?", code=1)
    assert told["turns"][0]["error"]["code"] == "chat-refused"
    assert "Your message is kept" in told["reply"]
    server.always(None)
    server.model = follow(otherwise='{"summary": "They met.", "facts": []}')
    again = shell.json("chat", "--resume", told["conversation"], "/retry")
    assert (again["turns"][0]["message"], again["turns"][0]["error"]) == ("Who is the villain?", None)


def test_a_bad_summary_is_no_failed_chat(shell: Shell, server: ChatServer) -> None:
    """L1, W9: the model answered the message, so the call succeeds; the next call finishes what was left."""
    shell.env |= {"LUKASA_CHAT": "openai:fake", **server.env}
    server.model = follow(otherwise="Malachar is the villain, I would say.")  # fine as an answer, no summary
    told = shell.json("chat", "Remember that the villain is called Malachar")
    assert told["turns"][0]["error"] is None
    assert "Malachar" in told["reply"]
    assert told["persisted"] is None
    assert "no usable summary" in told["unfinished"]
    shown = shell.run("chat", "The villain keeps a raven")
    assert "the summary is not written yet" in shown
    assert "the next `lukasa chat` finishes" in shown
    open_ones = {c["ref_code"] for c in shell.json("conversation", "list")["conversations"] if c["status"] == "active"}
    assert told["conversation"] not in open_ones
    assert len(open_ones) == 1
    shell.env["LUKASA_CHAT"] = "none"
    shell.run("chat", "hello")
    assert not [c for c in shell.json("conversation", "list")["conversations"] if c["status"] == "active"]


@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (("chat", "--resume", "a", "--conversation", "b", "x"), 2, "usage"),
        (("chat", "--resume", "nope", "x"), 1, "not-found"),
        (("chat", "x", "--refine"), 2, "invalid-input"),
        (("chat", "x" * 30_000), 2, "invalid-content"),
    ],
)
def test_calls_that_are_wrong(shell: Shell, args: tuple[str, ...], code: int, kind: str) -> None:
    """W9: typed, with what to change."""
    assert shell.fails(*args, code=code)["code"] == kind


def test_an_unknown_model_setting(shell: Shell) -> None:
    """W9: LUKASA_CHAT is checked when it is needed."""
    shell.env["LUKASA_CHAT"] = "oracle"
    assert shell.fails("chat", "Hello", code=2)["code"] == "invalid-input"


def test_without_langgraph(shell: Shell) -> None:
    """L3: the error is the command that installs it; nothing is started."""
    code = "import sys; sys.modules['langgraph'] = None; from lukasa.surfaces.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "chat", "Hello"],
        env=shell.environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'lukasa[langgraph]'" in done.stderr
    assert not shell.data.exists()


def test_the_prompt_comes_before_langgraph(shell: Shell) -> None:
    """U2: the module of the command brings neither the graph library nor a client; the prompt need not wait."""
    code = "import sys, lukasa.surfaces.cli.chat; print({'langgraph', 'langchain_core', 'httpx2'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=shell.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_on_a_terminal(shell: Shell) -> None:
    """U2, L1: a prompt, answers as they come, and Ctrl-D ends with what was missed written down."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "chat"], stdin=theirs, stdout=theirs, stderr=theirs, env=shell.environment(TERM="xterm")
    )
    os.close(theirs)
    heard = until(ours, b"> ")
    for said in (b"I prefer tea over coffee.\n", b"Remember that the ship is called Vey.\n"):
        os.write(ours, said)
        heard += until(ours, b"\n> ")
    os.write(ours, b"\x04")
    heard += until(ours, b"")
    os.close(ours)
    assert process.wait(60) == 0
    assert "I’ll remember that".encode() in heard
    assert b"ended " in heard
    stored = {(e["content"], e["source"]) for e in shell.json("list")["entries"]}
    assert stored == {("I prefer tea over coffee.", "persist"), ("the ship is called Vey.", "user")}


def until(terminal: int, mark: bytes) -> bytes:
    """What a terminal shows up to a mark at its end; without one, until it closes."""
    shown = b""
    while not mark or not shown.replace(b"\r", b"").endswith(mark):
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that the other end has closed
            break
        if not part:
            break
        shown += part
    return shown


def test_the_agent_is_documented() -> None:
    """L3: the page on chat names the parts that a program imports."""
    page = (ROOT / "docs" / "how-to" / "chat-and-langgraph.md").read_text("utf-8")
    assert all(name in page for name in ("context_node", "persist_node", "memory_tools", "lukasa chat", Agent.__name__))
