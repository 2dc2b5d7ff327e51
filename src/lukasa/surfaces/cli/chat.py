"""The command `chat`: talk with the reference agent on a terminal, in one call, or through a pipe.

LangGraph takes a second to import. A thread imports it while the prompt is already shown.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from importlib import import_module, util
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from lukasa.model.errors import ChatError, InvalidInput, NotFound, Refused
from lukasa.service import sessions
from lukasa.service.sessions import distill
from lukasa.service.sessions.session import Persisted
from lukasa.surfaces.cli.data import plain
from lukasa.surfaces.cli.invocation import MOST_INPUT, Invocation, pass_invocation
from lukasa.surfaces.cli.options import CliCommand
from lukasa.surfaces.cli.output import Line, Lines, block, brief, dim, encode, good, line, safe, title, warn, write
from lukasa.surfaces.cli.recall_commands import why_lines

if TYPE_CHECKING:
    from lukasa.surfaces.langgraph.graph import Agent, AgentAnswer

DEFAULT_AGENT = "assistant"
LAST = "last"
GRAPH = "lukasa.surfaces.langgraph.graph"
COMMANDS = {
    "/why": "explain each line of the last context",
    "/context": "show the context of the last turn, as the model got it",
    "/retry": "send the last message again, if it got no answer",
    "/leave": "stop here and keep the conversation open",
    "/end": "end the conversation, as Ctrl-D does",
    "/help": "show this list",
}


@click.command(
    cls=CliCommand,
    examples=(
        "lukasa chat",
        'lukasa chat "Remember that the villain is called Malachar"',
        'lukasa chat "Keep track of this: I have edited 3 pages" --keep',
        'lukasa chat --resume last "I edited 2 more pages. How many is that?" --json',
    ),
)
@click.argument("words", nargs=-1, metavar="[MESSAGE]...")
@click.option("--resume", metavar="REF", help="Continue an open conversation; `last` is the latest one.")
@click.option("--keep", is_flag=True, help="Leave the conversation open at the end of this call.")
@click.option("--refine", is_flag=True, help="Let the model check the entries that memory selects; needs a model.")
@pass_invocation
def chat(cli: Invocation, words: Sequence[str], resume: str | None, keep: bool, refine: bool) -> None:
    """Talk with an agent that uses this memory.

    Without MESSAGE the command prompts for messages; Ctrl-D ends it, and /help lists the commands. If stdin is not a
    terminal, every line of stdin is a message. LUKASA_CHAT names the model (auto, none, openai:NAME, anthropic:NAME,
    command:PROGRAM); without a model, rules answer: they store, recall, count, and forget what you confirm.

    Each call is a conversation of its own. At its end the agent stores missed facts, writes a summary to the channel,
    and clears the entries of the conversation. With --keep the conversation stays open; one that was continued with
    --resume or --conversation stays open until /end.
    """
    saver, extra = ("postgres", "langgraph-postgres") if cli.settings.database else ("sqlite", "langgraph")
    if util.find_spec("langgraph") is None or util.find_spec(f"langgraph.checkpoint.{saver}") is None:
        raise Refused("`lukasa chat` needs LangGraph, which is not installed", fix=f"pip install 'lukasa[{extra}]'")
    if resume is not None and cli.choices.conversation is not None:
        raise click.UsageError("give --resume or --conversation, not both")
    with Dialogue(cli, resume or cli.choices.conversation, keep=keep, refine=refine) as dialogue:
        if words:
            code = dialogue.batch([" ".join(words)])
        elif not sys.stdin.isatty():
            code = dialogue.batch(_lines_of_stdin())
        elif cli.choices.json:
            raise click.UsageError("--json needs a message, or messages on stdin")
        else:
            code = dialogue.interactive()
    if code:
        click.get_current_context().exit(code)


def _lines_of_stdin() -> Iterator[str]:
    for raw in sys.stdin.buffer:
        if len(raw) > MOST_INPUT:
            raise InvalidInput(f"a line of stdin is larger than {MOST_INPUT:,} bytes", fix="split it")
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise InvalidInput(f"stdin is not UTF-8 text ({error.reason})", fix="convert it to UTF-8 first") from error
        if text:
            yield text


class Dialogue:
    """One call of `lukasa chat`: creates the agent at the first message, and prints its answers."""

    def __init__(self, cli: Invocation, resume: str | None, *, keep: bool, refine: bool) -> None:
        self._session = cli
        self._world = cli.workspace()
        self._author = self._world if cli.choices.agent is None else None
        if self._author is not None:
            self._world = self._author.acting(agent=DEFAULT_AGENT)
        self._resume = self._open(resume)
        self._keep = keep or resume is not None
        self._chat = cli.memory.chat()
        if refine and not self._is_model:
            raise InvalidInput("--refine needs a model", fix="set LUKASA_CHAT, as in LUKASA_CHAT=openai:NAME")
        self._refine = refine
        self._stack = ExitStack()
        self._loading: Future[Any] = self._stack.enter_context(ThreadPoolExecutor(1)).submit(import_module, GRAPH)
        self._agent: Agent | None = None
        self._unfinished: str | None = None  # why the summary could not be written

    def __enter__(self) -> Dialogue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def batch(self, messages: Iterator[str] | Sequence[str]) -> int:
        """Send messages one after another, then end. Return exit code 1 if a message got no answer."""
        turns: list[dict[str, Any]] = []
        failed, ending = False, not self._keep
        for message in messages:
            if message in ("/end", "/leave"):
                ending = message == "/end"
                break
            told, failed = self._turn(message)
            turns.append(told)
            if failed:
                break
        done = self._finish(ending=ending, failed=failed)
        if self._session.choices.json:
            sys.stdout.write(encode(self._document(turns, done)) + "\n")
        return int(failed)

    def interactive(self) -> int:
        """Prompt for messages until Ctrl-D, /end or /leave."""
        if util.find_spec("readline") is not None:
            import_module("readline")  # arrow keys and history in `input`
        model = self._chat.name if self._is_model else "offline responder (no model is set)"
        self._print([line(title("lukasa chat"), dim(f"  workspace {self._world.name}, {model}"))])
        self._print([line(dim("  Ctrl-D ends and saves; /help lists the commands"))])
        ending = True
        while True:
            try:
                message = input("> ").strip()
            except EOFError:
                sys.stdout.write("\n")
                break
            if message in ("/end", "/leave"):
                ending = message == "/end"
                break
            if message:
                self._turn(message)
        self._finish(ending=ending, failed=False)
        return 0

    # One turn

    def _turn(self, message: str) -> tuple[dict[str, Any], bool]:
        if message in COMMANDS and message != "/retry":
            return self._command(message), False
        agent = self._led()
        speak: Callable[..., AgentAnswer] = (
            agent.retry if message == "/retry" else lambda on_text: agent.turn(message, on_text)
        )
        if self._session.choices.json:
            answer = speak(None)
            return _told(answer), answer.error is not None
        streamed: list[str] = []

        def show(text: str) -> None:
            streamed.append(text)
            sys.stdout.write(safe(text))
            sys.stdout.flush()

        answer = speak(show)
        if "".join(streamed).strip() and answer.error is not None:
            sys.stdout.write("\n")
        if not "".join(streamed).strip().endswith(answer.reply.strip()):
            sys.stdout.write(safe(answer.reply))
        sys.stdout.write("\n")
        return _told(answer), answer.error is not None

    def _command(self, name: str) -> dict[str, Any]:
        context = self._agent.context if self._agent is not None else None
        if name == "/help":
            self._print(line(f"{command:<10}", dim(text)) for command, text in COMMANDS.items())
        elif context is None:
            self._print([line("Nothing was said yet.")])
        elif name == "/context":
            self._print(block(str(context)))
        else:
            self._print(why_lines(context, self._world))
        return {"message": name, "context": plain(context) if context is not None else None}

    # Beginning and end

    @property
    def _is_model(self) -> bool:
        return self._chat.name != "offline"

    def _open(self, resume: str | None) -> str | None:
        if resume != LAST:
            return self._world.conversation(resume).ref_code if resume else None
        found = [c for c in self._world.conversations() if str(c.status) == "active"]
        if not found:
            raise NotFound("no conversation is open", fix="start one with `lukasa chat --keep`")
        return max(found, key=lambda c: (c.started_at, c.id)).ref_code

    def _led(self) -> Agent:
        """Return the agent. The first message creates it, and then finishes sessions that were killed before."""
        if self._agent is None:
            graph = self._loading.result()
            threads = self._session.memory.threads(self._world)
            distil = distill.by_model(self._chat) if self._is_model else None
            refine = sessions.refine.by_model(self._chat) if self._refine else None
            making = graph.Making(self._chat, refine=refine, distil=distil, author=self._author)
            agent: Agent = self._stack.enter_context(
                graph.Agent(self._world, making, threads=threads, resume=self._resume)
            )
            self._agent = agent
            if threads is not None:
                distil = distill.by_model_or_rules(self._chat) if self._is_model else None
                sessions.session.resume_pending(self._world, alive=threads.led, distil=distil)
        return self._agent

    def _finish(self, *, ending: bool, failed: bool) -> Persisted | None:
        """End or leave the conversation. After a message without an answer it stays open for the next session."""
        if self._agent is None and not (ending and self._resume):
            return None
        agent = self._led()
        ref = agent.conversation.ref_code
        if failed:
            again = "/retry" if self._world.spec.backend.checkpointer != "none" else '"…"'
            self._print([line(dim(f"  `lukasa chat --resume {ref} {again}` sends the message again"))])
            return None
        if not ending:
            agent.leave()
            self._print([line(dim(f"  still open: `lukasa chat --resume {ref}`"))])
            return None
        try:
            done = agent.end()
        except ChatError as error:
            # The messages were answered. The next call sees that nobody leads this conversation, and finishes it.
            self._unfinished = error.message
            self._print([line(warn("the summary is not written yet: "), brief(error.message))])
            self._print([line(dim(f"  nothing is lost: the next `lukasa chat` finishes conversation {ref}"))])
            return None
        self._print(_ended(done))
        return done

    def _document(self, turns: list[dict[str, Any]], done: Persisted | None) -> dict[str, Any]:
        last = turns[-1] if turns else {}
        return {
            "conversation": self._agent.conversation.ref_code if self._agent is not None else None,
            "model": self._chat.name,
            "reply": last.get("reply", ""),
            "tool_calls": last.get("tool_calls", []),
            "turns": turns,
            "persisted": _persisted(done) if done is not None else None,
            "unfinished": self._unfinished,
        }

    def _print(self, lines: Lines) -> None:
        if not self._session.choices.json:
            write(lines, no_color=self._session.choices.no_color)


def _told(answer: AgentAnswer) -> dict[str, Any]:
    error = answer.error
    return {
        "message": answer.message,
        "reply": answer.reply,
        "tool_calls": plain(answer.calls),
        "error": None if error is None else {"code": error.code, "message": error.message, "fix": error.fix},
    }


def _persisted(done: Persisted) -> dict[str, Any]:
    return {
        "facts": plain(done.facts),
        "summary": done.summary.content if done.summary is not None else None,
        "dropped": done.ended.dropped,
        "archived": done.ended.archived,
        "carried": done.ended.carried,
        "refused": plain(done.refused),
    }


def _ended(done: Persisted) -> Iterator[Line]:
    counts = Counter(written.outcome for written in done.facts) + Counter(refused=len(done.refused))
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.items()) or "nothing more to store"
    yield line(good("ended "), done.conversation.ref_code, dim(f"  facts found at the end: {told}"))
    for written in done.facts:
        yield line(dim(f"  {written.outcome}: {brief(written.entry.content if written.entry else written.reason)}"))
    for refused in done.refused:
        yield line(warn(f"  refused: {brief(refused.text)}"), dim(f"  {brief(refused.reason)}"))
