"""The reference agent: the whole loop of a session as a LangGraph graph.

    START ─┬─ listen ─ context ─ planner ⇄ tools
           │                        └─ speak ─ END
           └─ persist ─ END

`listen` stores the user's words before any model runs, so no failure can lose them. The planner is any Chat.
LangGraph's own saver checkpoints the graph's state, beside the memory: in a file or a schema of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Annotated, Any, TypedDict, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, InvalidToolCall, ToolMessage
from langchain_core.messages import ToolCall as LangChainCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from msgspec import Struct

from lukasa.model.errors import ChatError, InvalidInput
from lukasa.model.ids import new_id
from lukasa.model.secrets import Masked, mask
from lukasa.ports import Chat, EmbeddingChat, Message, Threads, Tool, ToolCall
from lukasa.read.context import Context, halves
from lukasa.service import inputs
from lukasa.service.sessions import session
from lukasa.service.sessions.distill import Distil, Turn
from lukasa.service.sessions.refine import Refine
from lukasa.service.sessions.session import Persisted
from lukasa.service.workspace import Workspace
from lukasa.surfaces.api.toolbox import Toolbox
from lukasa.surfaces.api.verb import SessionTurn
from lukasa.surfaces.langgraph.toolkit import context_node, last_said, listed, text_of

ROUNDS = 8
REMEMBERED_MESSAGES = 60
TIMEOUT = 60.0

GUIDE = """You are an assistant with a memory. Its context for this turn follows. Treat it as evidence that may be out
of date: say when something was noted rather than asserting it, and say plainly when you know nothing. Write to memory
with the tools, only when you decide that something should last; tell the user what you stored or forgot."""


class GraphState(TypedDict, total=False):
    """The graph's state of a conversation. `seen`, `rounds` and `faults` belong to the current turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    context: str
    seen: list[str]
    rounds: int
    faults: int
    ending: bool


class Called(Struct, frozen=True):
    name: str
    arguments: Mapping[str, Any]
    result: str


class AgentAnswer(Struct, frozen=True):
    """The result of a turn. With an `error` the model gave no reply; the message is kept, and `retry` tries again."""

    message: str
    reply: str
    calls: tuple[Called, ...] = ()
    error: ChatError | None = None


class Making(Struct, frozen=True):
    """The settings of an agent: its planner, a filter of the context if any, the function that distils a session.

    Without `distil`, rules distil, with the embedder of the workspace. `tiers` bounds a subagent: its context, what its
    tools read, write and forget, and what its end writes. `author` is the handle of the owner, where the owner types
    the messages: then what the owner asks to remember is kept with its secrets, though no model sees them.
    """

    chat: Chat
    refine: Refine | None = None
    distil: Distil | None = None
    tiers: Sequence[str] | None = None
    timeout: float = TIMEOUT
    author: Workspace | None = None


class Agent:
    """One conversation with the graph. Close it with `end` or `leave`; a `with` block frees its files either way."""

    def __init__(
        self, world: Workspace, making: Making, *, threads: Threads | None = None, resume: str | None = None
    ) -> None:
        self._files = ExitStack()
        world = world.limited(*making.tiers) if making.tiers is not None else world
        try:
            self.conversation = session.open_conversation(world, resume)
            if threads is not None:  # lead before marking: a marked session that nobody leads counts as dead
                self._files.enter_context(threads.lead(self.conversation))
            self.world = session.begin(world, self.conversation.id)
            saver: BaseCheckpointSaver[str] = InMemorySaver()
            if threads is not None and world.spec.backend.checkpointer != "none":
                saver = self._files.enter_context(threads.saver())
            self.context: Context | None = None
            self._nodes = _Nodes(self.world, making)
            self.graph = build(self._nodes, saver, on_context=self._oriented)
        except BaseException:
            self._files.close()
            raise
        self._config: RunnableConfig = {"configurable": {"thread_id": self.conversation.id}, "recursion_limit": 100}

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def turn(self, text: str, on_text: Callable[[str], None] | None = None) -> AgentAnswer:
        """Send a message, and return the answer. The graph keeps messages in a file, so a mark replaces each secret."""
        typed = mask(inputs.text(text, "a message", inputs.MAX_QUERY))
        self._nodes.typed.append(typed)
        said = HumanMessage(typed.text, id=new_id())
        fresh: GraphState = {"messages": [said], "seen": [], "rounds": 0, "faults": 0, "ending": False}
        return self._run(fresh, on_text)

    def retry(self, on_text: Callable[[str], None] | None = None) -> AgentAnswer:
        """Continue a failed turn where it failed. If none failed, return the last answer again."""
        if not self.graph.get_state(self._config).values:
            raise InvalidInput("no message of this conversation is kept to try again", fix="send the message again")
        return self._run(None, on_text)

    def end(self) -> Persisted:
        """Persist and end the conversation. If that fails, everything stays, and a second call tries again."""
        done: list[Persisted] = []
        for part in self.graph.stream({"ending": True}, self._config, stream_mode="custom", durability="sync"):
            done += [part["persisted"]] if "persisted" in part else []
        return done[0]

    def leave(self) -> None:
        """Stop without ending the conversation."""
        session.leave(self.world)

    def _oriented(self, context: Context) -> None:
        self.context = context

    def _run(self, given: GraphState | None, on_text: Callable[[str], None] | None) -> AgentAnswer:
        error: ChatError | None = None
        try:
            for part in self.graph.stream(given, self._config, stream_mode="custom", durability="sync"):
                if on_text is not None and "text" in part:
                    on_text(part["text"])
        except ChatError as failure:
            error = failure
        messages = listed(self.graph.get_state(self._config).values)
        return _answer(messages, error)


def _answer(messages: Sequence[BaseMessage], error: ChatError | None) -> AgentAnswer:
    last = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=len(messages))
    turn = messages[last:]
    results = {m.tool_call_id: text_of(m) for m in turn if isinstance(m, ToolMessage)}
    calls = [call for m in turn if isinstance(m, AIMessage) for call in _calls(m)]
    called = tuple(Called(c.name, c.arguments, results.get(c.id, "")) for c in calls)
    if error is not None:
        return AgentAnswer(last_said(turn), apology(error), called, error)
    spoken = turn[-1] if turn and isinstance(turn[-1], AIMessage) else None
    return AgentAnswer(last_said(turn), text_of(spoken) if spoken else "", called)


def apology(error: ChatError) -> str:
    fix = f" ({error.fix})" if error.fix else ""
    return f"The model gave no answer: {error.message}{fix}. Your message is kept, and you can try again."


# The graph


def build(
    nodes: _Nodes, saver: BaseCheckpointSaver[str], *, on_context: Callable[[Context], None] | None = None
) -> CompiledStateGraph[GraphState, None, GraphState, GraphState]:
    """Build the graph of one conversation."""
    world, making = nodes.world, nodes.making
    heard = world.outbound("chat")
    orient = context_node(heard, key="context", refine=making.refine, on_context=nodes.saw(on_context))
    graph = StateGraph(GraphState)
    graph.add_node("listen", nodes.listen)
    graph.add_node("context", lambda state: {**orient(state), "seen": nodes.shown})
    graph.add_node("planner", nodes.plan)
    graph.add_node("tools", nodes.call)
    graph.add_node("speak", nodes.speak)
    graph.add_node("persist", nodes.persist)
    graph.add_conditional_edges(
        START, lambda state: "persist" if state.get("ending") else "listen", ["persist", "listen"]
    )
    graph.add_edge("listen", "context")
    graph.add_edge("context", "planner")
    graph.add_conditional_edges("planner", _after_planning, ["tools", "speak"])
    graph.add_edge("tools", "planner")
    graph.add_edge("speak", END)
    graph.add_edge("persist", END)
    return graph.compile(checkpointer=saver)


def _after_planning(state: GraphState) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and _calls(last) else "speak"


class _Nodes:
    """The nodes of this agent alone."""

    def __init__(self, world: Workspace, making: Making) -> None:
        self.world = world = world.limited(*making.tiers) if making.tiers is not None else world
        self.making = making
        chat = making.chat
        self.chat = chat.with_embedder(world.ctx.embedder) if isinstance(chat, EmbeddingChat) else chat
        self.box = Toolbox(world.outbound("chat"))
        self.author = making.author.at(**world.ctx.keys) if making.author is not None else None
        self.typed: deque[Masked] = deque(maxlen=2)  # "please remember that" means the message before
        self.shown: list[str] = []

    def saw(self, then: Callable[[Context], None] | None) -> Callable[[Context], None]:
        """Note the entries of the context: their use is counted, and a read in this turn must not count it again."""

        def oriented(context: Context) -> None:
            self.shown = list(context.hits)
            if then is not None:
                then(context)

        return oriented

    def listen(self, state: GraphState) -> dict[str, Any]:
        said = next(m for m in reversed(state["messages"]) if isinstance(m, HumanMessage))
        session.record(self.world, Turn("user", text_of(said), id=said.id or ""))
        return {}

    def plan(self, state: GraphState) -> dict[str, Any]:
        """Ask the model. After the last round it gets no tools, and must answer with what it has."""
        writer = get_stream_writer()
        last_round = state.get("rounds", 0) >= ROUNDS
        tools: tuple[Tool, ...] = () if last_round else self.box.tools
        reply = self.chat.reply(
            [*_system(state.get("context", "")), *_port_messages(state["messages"])],
            tools,
            timeout=self.making.timeout,
            on_text=lambda text: writer({"text": text}),
        )
        calls = () if last_round else reply.tool_calls
        text = reply.text if reply.text.strip() or calls else "I have no answer to that."
        return {"messages": [_ai_message(text, calls)]}

    def call(self, state: GraphState) -> dict[str, Any]:
        asked = cast(AIMessage, state["messages"][-1])
        seen, faults = list(state.get("seen", [])), state.get("faults", 0)
        answers = []
        for call in _calls(asked):
            turn = SessionTurn(seen, self.author, tuple(self.typed))
            outcome = self.box.call(call, turn=turn, faults=faults)
            seen += [id for id in outcome.retrieved if id not in seen]
            faults += bool(call.fault)
            status = "error" if outcome.failed else "success"
            answers.append(ToolMessage(outcome.text, tool_call_id=call.id, name=call.name, status=status))
        return {"messages": answers, "seen": seen, "faults": faults, "rounds": state.get("rounds", 0) + 1}

    def speak(self, state: GraphState) -> dict[str, Any]:
        last = state["messages"][-1]
        session.record(self.world, Turn("assistant", text_of(last), id=last.id or ""))
        return {}

    def persist(self, state: GraphState) -> dict[str, Any]:
        done = session.persist(self.world, distil=self.making.distil)
        get_stream_writer()({"persisted": done})
        return {"ending": False}


# Between LangChain's messages and the port's


def _ai_message(text: str, calls: Sequence[ToolCall]) -> AIMessage:
    good = [LangChainCall(name=c.name, args=dict(c.arguments), id=c.id, type="tool_call") for c in calls if not c.fault]
    bad = [
        InvalidToolCall(name=c.name, args="", id=c.id, error=c.fault, type="invalid_tool_call")
        for c in calls
        if c.fault
    ]
    return AIMessage(text, tool_calls=good, invalid_tool_calls=bad, id=new_id())


def _calls(message: AIMessage) -> list[ToolCall]:
    good = [ToolCall(c["id"] or "", c["name"], c["args"]) for c in message.tool_calls]
    bad = [ToolCall(c["id"] or "", c["name"] or "", {}, c["error"] or "?") for c in message.invalid_tool_calls]
    return good + bad


def _system(context: str) -> Iterator[Message]:
    """Give the guide and the stable part of the context first, since a provider may cache it; recalled memory last."""
    stable, recalled = halves(context)
    yield Message("system", f"{GUIDE}\n\n{stable}".rstrip())
    if recalled.strip():
        yield Message("system", recalled.strip())


def _port_messages(messages: Sequence[AnyMessage]) -> Iterator[Message]:
    """Give the latest messages to the planner, starting with a user's message."""
    recent = list(messages[-REMEMBERED_MESSAGES:])
    while recent and len(recent) < len(messages) and not isinstance(recent[0], HumanMessage):
        recent.pop(0)
    for message in recent:
        if isinstance(message, HumanMessage):
            yield Message("user", text_of(message))
        elif isinstance(message, AIMessage):
            yield Message("assistant", text_of(message), tuple(_calls(message)))
        elif isinstance(message, ToolMessage):
            yield Message("tool", text_of(message), tool_call_id=message.tool_call_id)
