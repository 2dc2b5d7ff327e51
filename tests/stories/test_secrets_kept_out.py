"""Secrets: whoever is not the owner stores none, and what the owner puts on purpose stays out of every prompt.

The tests act through a surface, and then search the bytes of every file in the data folder.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from lukasa import Lukasa, Memo, Trust, Workspace
from lukasa.anthropic import MemoryTool
from lukasa.model.events import EventDraft
from lukasa.model.item import ItemAddress
from lukasa.model.job import JobDraft
from lukasa.model.telemetry import TelemetryEvent
from lukasa.ports import Embedder, Message, Reply, Tool, ToolCall, Usage
from lukasa.providers.chat.offline import OfflineChat
from lukasa.service.curation.reflect import draft
from lukasa.service.entries.store_items import PutItem, write
from lukasa.service.jobs.task import ask
from lukasa.storage.operations import Emit, Enqueue, Record
from lukasa.surfaces.api.shapes import EntriesOut, StandingOut
from tests.helpers import sessions, talk
from tests.helpers.cli import Shell
from tests.helpers.curating import work
from tests.helpers.mcp import beside, called, session
from tests.helpers.server import running
from tests.unit.test_task import Scripted, task

KEY = "gh" + "p_" + "Zk3Jx9QmZ2LwT7vRbN5sYcD8fHgA1pE4uWo6"
WORD = "tulip-4417"
WIFI = f"The wifi password of the studio is {WORD}"
SAID = f"The deploy job logs in with {KEY} on every run."


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"})


def traces(folder: Path, *secrets: str) -> list[str]:
    """The files below a folder that hold a secret, or half of a long one."""
    parts = [part for secret in secrets for part in ((secret,) if len(secret) < 20 else (secret[:20], secret[-20:]))]
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [file.name for file in files if any(part.encode() in file.read_bytes() for part in parts)]


def folder(memory: Lukasa, world: Workspace) -> Path:
    place = memory.folder(world)
    assert place is not None
    return place.parents[1]


# Nobody else's secret is stored


def test_an_agents_put_is_redacted_everywhere(memory: Lukasa, world: Workspace) -> None:
    """Content, tags, metadata, source and the causes of changes reach no file with a secret."""
    agent = world.acting(agent="claude")
    written = agent.put(
        "workspace", SAID, tags=[KEY], source=f"mail {KEY}", metadata={"note": f"use {KEY}", "password": WORD}
    )
    assert written.entry is not None
    assert written.entry.content == "The deploy job logs in with [secret] on every run."
    assert written.reason == "a secret is replaced by a mark: only the owner can store one, on purpose"
    assert not written.entry.sensitive
    agent.update(written.id, content=f"The deploy job logs in with the password {WORD}")
    agent.update(written.id, metadata={"api_key": KEY, "sensitive": True})
    agent.put_many("workspace", [Memo(f"Use {KEY} for the backup."), f"Passwort: {WORD}"])
    agent.forget(written.id, f"it held {KEY}")
    agent.link_action("deploy", [written.id], f"pushed with {KEY}")
    assert traces(folder(memory, world), KEY, WORD) == []


def test_an_import_and_a_stranger_store_no_secret(memory: Lukasa, world: Workspace) -> None:
    """The owner's import of another person's text is not the owner's own text."""
    world.put("workspace", SAID, curator="import")
    world.acting(principal="web", trust=Trust.UNTRUSTED).put("workspace", f"{SAID} Really.")
    assert traces(folder(memory, world), KEY) == []


def test_an_observed_session_leaves_no_secret(shell: Shell, tmp_path: Path) -> None:
    """The transcript, its title, its job and the facts taken from it hold marks, also where a title is cut."""
    first = f"{'Remember this about our harbour. ' * 4}The token is {KEY}"
    turns = (("user", first), ("user", f"Our ferry database runs on db-7 with password {WORD}."), ("assistant", SAID))
    shell.run("observe", str(sessions.claude(tmp_path / "s.jsonl", turns)))
    shell.run("observe", str(sessions.messages(tmp_path / "m.json", turns, title=f"About {KEY}")))
    assert "[secret]" in str(shell.json("transcripts", "list"))
    assert traces(shell.data, KEY, WORD) == []


def test_a_long_line_hides_no_half_secret(shell: Shell, tmp_path: Path) -> None:
    """The line of a dump is shortened after secrets were looked for."""
    dump = f"Here:\n{'x' * 270}.{KEY}.{'y' * 3000}"
    shell.run("observe", str(sessions.claude(tmp_path / "s.jsonl", (("user", dump), ("assistant", "I see.")))))
    assert traces(shell.data, KEY) == []


def test_a_conversation_leaves_no_secret(memory: Lukasa, world: Workspace) -> None:
    """The reference agent keeps messages, notes, checkpoints and a summary: none holds what was typed as a secret."""
    reply = talk.say(
        memory, world, f"Remember that the studio's door code is 5581209477, and that {SAID}", "What do you know?"
    )
    assert KEY not in reply
    assert traces(folder(memory, world), KEY, "5581209477") == []


def test_notes_channels_and_the_log_hold_marks(memory: Lukasa, world: Workspace) -> None:
    """Working notes, descriptions and lines of the log file are no place for a secret, whoever writes them."""
    channel = world.create_channel("ops", f"deploys, key {KEY}")
    conversation = world.start(channel.name)
    note = world.write_note(conversation.id, "plan", {"step": f"push with {KEY}", "secret": WORD})
    assert note.value == {"step": "push with [secret]", "secret": "[secret]"}
    world.slog.write("deploy", "gateway", f"pushed with {KEY}", reason=f"the password is {WORD}")
    assert traces(folder(memory, world), KEY, WORD) == []


def test_jobs_events_and_telemetry_hold_marks(memory: Lukasa, world: Workspace) -> None:
    """The store itself takes secrets out of the payload of a job, the detail of an event and telemetry."""
    ctx = world.ctx
    point = TelemetryEvent(ctx.now, "error", "test", "push", "push.failed", False, 0.0, {"error": f"refused: {KEY}"})
    asked = JobDraft("nothing", "nothing:1", {"text": f"push with {KEY}", "keys": [{"password": WORD}]})
    ctx.apply(ctx.local, Enqueue(asked), Emit(point), Record(EventDraft("test.note", "x", {"about": [KEY]})))
    job = ctx.local.job("nothing:1")
    assert job is not None
    assert job.payload == {"text": "push with [secret]", "keys": [{"password": "[secret]"}]}
    assert traces(folder(memory, world), KEY, WORD) == []


def test_an_agents_items_hold_marks_and_the_owners_do_not(memory: Lukasa, world: Workspace) -> None:
    """A program of the owner reads back from a LangGraph store what it wrote; an agent's secrets are redacted."""
    mine, theirs = ItemAddress(("mine",), "k"), ItemAddress(("theirs",), "k")
    write(world.acting(agent="claude").ctx, [PutItem(theirs, {"text": SAID}, texts=(("text", SAID),))], None)
    assert traces(folder(memory, world), KEY) == []
    write(world.ctx, [PutItem(mine, {"text": SAID})], None)
    found = world.ctx.local.items([mine, theirs])
    assert found[mine].value == {"text": SAID}
    assert found[theirs].value == {"text": SAID.replace(KEY, "[secret]")}


def test_mcp_and_http_store_no_secret(memory: Lukasa, world: Workspace) -> None:
    """An agent that puts through a server stores marks, and its idempotency key keeps no other answer."""

    async def put(client: Any) -> Any:
        return await called(client, "memory_put", content=SAID)

    assert "[secret]" in session(lambda: beside(memory), put)["entry"]["content"]
    with running(memory) as house:
        agent = house.granted(name="cursor")
        answer = agent.post("/v1/workspaces/novel/entries", {"content": f"{SAID} Twice."}, idempotency_key="k-1")
        assert answer.status == 201
    assert traces(folder(memory, world), KEY) == []


# The owner's own secret is kept, and kept apart


def test_what_the_owner_puts_is_verbatim_and_marked(world: Workspace) -> None:
    """A write on purpose is kept word for word; the mark says that it is sensitive."""
    written = world.put("workspace", WIFI)
    assert written.entry is not None
    assert (written.entry.content, written.entry.sensitive) == (WIFI, True)
    assert written.reason == "the text holds a secret: it is kept as it is and marked sensitive"
    (hit,) = world.read("wifi password of the studio")
    assert hit.content == WIFI
    assert world.get(written.id).metadata == {"sensitive": True}


def test_the_owner_decides_about_the_mark(world: Workspace) -> None:
    """A false alarm is unmarked, and any entry can be marked."""
    plain = world.put("workspace", WIFI, metadata={"sensitive": False})
    assert plain.entry is not None
    assert (plain.entry.content, plain.entry.sensitive) == (WIFI, False)
    assert WORD in str(world.context("wifi password of the studio"))
    hidden = world.put("workspace", "Mara is ill.", metadata={"sensitive": True})
    assert "Mara" not in str(world.context("how is Mara"))
    world.update(hidden.id, metadata={"sensitive": False})
    assert "Mara" in str(world.context("how is Mara"))


def test_a_secret_told_to_the_chat_is_kept_as_typed(memory: Lukasa, world: Workspace) -> None:
    """Who types "remember …" is the owner: the entry holds the words, and no model, checkpoint or note does."""
    seen: list[str] = []

    class Watching(OfflineChat):
        def with_embedder(self, embedder: Embedder | None) -> OfflineChat:
            return self

        def reply(self, messages: Sequence[Message], *given: Any, **more: Any) -> Reply:
            seen.extend(message.content for message in messages)
            return super().reply(messages, *given, **more)

    with talk.agent(memory, world, chat=Watching(), author=world) as agent:
        answer = agent.turn(f"Please remember that {WIFI[0].lower()}{WIFI[1:]}")
        agent.turn("The PIN of the safe is 6031.")
        agent.turn("please remember that")
        agent.end()
    assert "I keep it as you typed it" in answer.reply
    assert {(e.content, e.sensitive, e.trust) for e in talk.facts(world)} == {
        (WIFI[0].lower() + WIFI[1:], True, Trust.AUTHOR),
        ("The PIN of the safe is 6031.", True, Trust.AUTHOR),
    }
    assert seen
    assert not any(WORD in text or "6031" in text for text in seen)
    checkpoints = (folder(memory, world) / "workspaces" / world.id).glob("check*")
    assert [file for file in checkpoints if WORD.encode() in file.read_bytes()] == []
    found = world.at(channel=world.channels()[0].id).read("what did we do last time", sensitive=False)
    assert WORD not in " ".join(hit.content for hit in found.hits)


def test_a_model_cannot_write_as_the_owner(memory: Lukasa, world: Workspace) -> None:
    """Words that the owner did not type stay the agent's, also if the model calls them the user's."""

    class Inventing(OfflineChat):
        def with_embedder(self, embedder: Embedder | None) -> OfflineChat:
            return self

        def reply(self, messages: Sequence[Message], *given: Any, **more: Any) -> Reply:
            if messages[-1].role == "tool":
                return Reply("done")
            said = {"content": "The master password of the bank is [secret]", "said_by": "user"}
            return Reply("", (ToolCall("1", "memory_put", said),))

    with talk.agent(memory, world, chat=Inventing(), author=world) as agent:
        agent.turn(WIFI)
    (stored,) = talk.facts(world)
    assert (stored.content, stored.trust) == ("The master password of the bank is [secret]", Trust.AGENT)


def test_a_secret_of_an_earlier_version_is_marked_by_a_worker(tmp_path: Path) -> None:
    """What was stored before its form was known is masked for agents after the job; the owner still reads it."""
    with Lukasa.open(tmp_path, embedder="none") as memory:
        id = memory.workspace("novel").put("workspace", WIFI, metadata={"sensitive": False}).id
    (file,) = tmp_path.glob("workspaces/*/memory.db")
    db = apsw.Connection(str(file))  # as a version without a detector stored it
    for _ in db.execute("UPDATE entries SET rest = replace(rest, '\"sensitive\":false', '')"):
        pass
    db.close()
    with Lukasa.open(tmp_path, embedder="none") as memory:
        world = memory.existing("novel")
        agent = world.acting(agent="cursor")
        assert WORD in agent.get(id).content
        world.ctx.apply(world.ctx.local, Enqueue(JobDraft("hide-secrets", "hide-secrets:1")))
        (run,) = [run for run in memory.worker(workspace=world).drain() if run.job.kind == "hide-secrets"]
        assert run.result == {"marked": 1}
        assert "[secret]" in agent.get(id).content
        assert not any(WORD in version.entry.content for version in agent.history(id))
        assert agent.read("wifi password of the studio").hits == ()
        assert world.get(id).content == WIFI


def test_changes_keep_the_mark_and_the_words(world: Workspace) -> None:
    """An edit, new metadata, forgetting and restoring neither redact nor unmark the owner's entry."""
    id = world.put("workspace", "The wifi of the studio is slow").id
    assert world.update(id, content=WIFI).entry.sensitive  # type: ignore[union-attr]
    world.update(id, metadata={"room": "studio"})
    world.forget(id)
    world.restore(id)
    found = world.get(id)
    assert (found.content, found.sensitive, found.metadata["room"]) == (WIFI, True, "studio")


def test_contexts_leave_it_out_unless_asked(world: Workspace) -> None:
    """Neither recalled entries, nor standing rules, nor pages bring a secret into a prompt."""
    world.put("workspace", WIFI)
    world.put("workspace", f"Always log in with password {WORD}x", kind="procedural", importance=1.0)
    world.edit_named("SOUL", f"I am the keeper. My PIN is 7703 and my key {KEY}.")
    text = str(world.context("wifi password of the studio"))
    assert not any(secret in text for secret in (WORD, KEY, "7703"))
    assert "I am the keeper." in text
    asked = str(world.context("wifi password of the studio", sensitive=True))
    assert all(secret in asked for secret in (WIFI, f"{WORD}x", KEY, "7703"))


def test_other_hits_take_the_place_of_sensitive_ones(world: Workspace) -> None:
    """A read without secrets is as long as one with them, and says that something was left out."""
    for n in range(5):
        world.put("workspace", f"The wifi password of room {n} is tulip-{n}417")
        world.put("workspace", f"The wifi of room {n} was slow on day {n}")
    found = world.read("wifi password of the room", limit=4, sensitive=False)
    assert len(found) == 4
    assert all("slow" in hit.content for hit in found)
    assert any("sensitive" in note for note in found.notes)
    secret = world.read("wifi password of the room", limit=1)[0]
    assert "tulip" in secret.content
    assert world.why("wifi password of the room", secret.id, sensitive=False)[-1].step == "sensitive"


def test_an_agent_sees_a_mark_unless_it_asks(world: Workspace) -> None:
    """Every way for an agent to see an entry shows the mark; asking is explicit."""
    id = world.put("workspace", WIFI).id
    agent = world.acting(agent="claude")
    assert len(agent.read("wifi password of the studio")) == 0
    seen = [agent.get(id), *agent.entries("workspace"), agent.history(id)[0].entry, agent.standing(id).entry]
    assert {entry.content for entry in seen} == {"The wifi password of the studio is [secret]"}
    assert WORD not in str(agent.update(id, importance=0.9))
    assert WORD not in str(agent.forget(id))
    assert WORD not in str(agent.undo(id))
    assert agent.get(id, sensitive=True).content == WIFI
    assert agent.read("wifi password of the studio", sensitive=True)[0].content == WIFI
    world.edit_named("SOUL", f"My key is {KEY}")
    assert KEY not in str([agent.get_named("SOUL"), agent.named(), agent.named_history("SOUL")])


def test_anthropics_tool_shows_a_mark(world: Workspace) -> None:
    """The model's memory folder lists the owner's entry, and its text holds the mark."""
    id = world.put("workspace", WIFI).id
    tool = MemoryTool(world)
    shown = tool.call({"command": "view", "path": f"/memories/workspace/entries/{id}.md"})
    assert "The wifi password of the studio is [secret]" in shown
    tool.call({"command": "create", "path": "/memories/notes.md", "file_text": SAID})
    assert KEY not in str(world.entries("workspace"))


def test_an_agent_cannot_take_the_mark_away(world: Workspace) -> None:
    """An agent may write metadata, but neither set the mark nor lift it, and with it the owner's words."""
    id = world.put("workspace", WIFI).id
    agent = world.acting(agent="claude")
    theirs = agent.put("workspace", "The studio opens at nine.", metadata={"sensitive": True, "room": "studio"})
    assert theirs.entry is not None
    assert theirs.entry.metadata == {"room": "studio"}
    agent.update(id, metadata={"sensitive": False, "room": "studio"})
    agent.update(id, metadata={})
    found = world.get(id)
    assert (found.content, found.sensitive) == (WIFI, True)


def test_mcp_leaves_it_out_unless_asked(memory: Lukasa, world: Workspace) -> None:
    """Read, context, list, get and the pages of the official client show no secret without `sensitive`."""
    id = world.put("workspace", WIFI).id
    world.edit_named("RULES", f"My key is {KEY}", tier="workspace")

    async def look(client: Any) -> tuple[list[Any], list[Any]]:
        question = {"query": "wifi password of the studio"}
        unasked = [
            await called(client, "memory_read", **question),
            await called(client, "memory_context", **question),
            await called(client, "memory_list"),
            await called(client, "memory_get", id=id),
            await called(client, "memory_history", id=id),
            await called(client, "named_get", name="RULES"),
        ]
        asked = [
            await called(client, "memory_read", **question, sensitive=True),
            await called(client, "memory_context", **question, sensitive=True),
            await called(client, "memory_get", id=id, sensitive=True),
        ]
        return unasked, asked

    work: Callable[[Any], Awaitable[tuple[list[Any], list[Any]]]] = look
    unasked, asked = session(lambda: beside(memory), work)
    assert not any(secret in json.dumps(unasked) for secret in (WORD, KEY))
    assert unasked[3]["sensitive"] is True
    assert all(WORD in json.dumps(answer) for answer in asked)


def test_http_shows_the_owner_everything_and_an_agent_a_mark(memory: Lukasa, world: Workspace) -> None:
    """The owner's page gets the text with its mark; a grant gets neither the hit nor the text."""
    id = world.put("workspace", WIFI).id
    with running(memory) as house:
        at = "/v1/workspaces/novel"
        mine = house.owner().get(f"{at}/entries/{id}").json
        assert (mine["content"], mine["sensitive"]) == (WIFI, True)
        agent = house.granted(name="cursor")
        answers = [agent.get(f"{at}/entries"), agent.get(f"{at}/entries/{id}")]
        answers.append(agent.post(f"{at}/read", {"query": "wifi password of the studio"}))
        answers.append(agent.get(f"{at}/entries?q=wifi+password"))
    assert all(answer.status == 200 for answer in answers)
    assert not any(WORD.encode() in answer.body for answer in answers)


def test_every_answer_of_a_verb_can_be_masked(world: Workspace) -> None:
    """A verb that oversees a workspace sees all of it; the answer to a grant is masked all the same, however deep."""
    id = world.put("workspace", WIFI, metadata={"room": "studio"}).id
    standing = StandingOut.of(world.standing(id))
    listed = EntriesOut(entries=[standing.entry])
    assert WORD in str([standing, listed])
    assert WORD not in str([standing.masked(), listed.masked()])
    assert listed.masked().entries[0].metadata == {"room": "studio", "sensitive": True}


def test_the_command_line_says_that_it_is_sensitive(shell: Shell) -> None:
    """`put` tells it, `list` masks it, `get` and `read` show it, `context` leaves it out."""
    assert "sensitive: it holds a secret" in shell.run("put", WIFI)
    id = shell.json("list")["entries"][0]["id"]
    assert shell.json("get", id)["sensitive"] is True
    assert "(sensitive) The wifi password of the studio is [secret]" in " ".join(shell.run("list").split())
    assert WIFI in shell.run("get", id)
    assert WIFI in shell.run("read", "wifi password")
    assert WORD not in shell.run("read", "wifi password", "--no-sensitive")
    assert WORD not in shell.run("context", "wifi password")
    assert WORD in shell.run("context", "wifi password", "--sensitive")


def test_the_hooks_inject_no_secret(shell: Shell, tmp_path: Path) -> None:
    """Neither the start of a session, nor a prompt, nor a failed tool brings a secret to the harness."""
    where = ("--workspace", "novel")
    shell.run("workspace", "create", "novel")
    shell.run("put", WIFI, *where)
    shell.run("put", "The wifi of the studio was slow on Monday", *where)
    for moment, event in (
        ("session-start", {"hook_event_name": "SessionStart", "source": "startup"}),
        ("prompt", {"hook_event_name": "UserPromptSubmit", "prompt": "what is the wifi password of the studio?"}),
        ("tool-failure", {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "error": "wifi password of"}),
    ):
        given = {**event, "session_id": "s-9", "cwd": str(tmp_path)}
        assert WORD not in shell.run("hook", moment, *where, input=json.dumps(given))


class Listener:
    """A model that remembers what it was shown, and finds nothing."""

    name = "listener"

    def __init__(self) -> None:
        self.heard = ""

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        self.heard += "\n".join(message.content for message in messages)
        return Reply('{"proposals": []}', usage=Usage(1, 1))


def test_upkeep_neither_shows_nor_copies_it(memory: Lukasa) -> None:
    """Reflection proposes nothing from a sensitive entry, and consolidation leaves it as it is."""
    world = memory.workspace("watched", preset="observer")
    id = world.put("workspace", WIFI, importance=0.9).id
    world.put("workspace", "The ferry leaves at six every morning", importance=0.9)
    world.ctx.apply(world.ctx.local, Enqueue(draft(world.ctx)))
    model = Listener()
    work(world, model)
    assert not any("wifi" in amendment.change for amendment in world.ctx.local.amendments())
    assert "ferry" in model.heard
    assert "studio" not in model.heard
    assert world.get(id).content == WIFI


def test_a_job_shows_no_secret_to_its_model() -> None:
    """A sensitive entry may be a neighbour of what a model judges: the prompt holds the mark."""
    model = Scripted(["{}"])
    ask(task(model), "judged", "Which holds?", f"1. {WIFI}\n2. The wifi is slow\n3. {SAID}", lambda data: data)
    heard = str(model.asked)
    assert "The wifi is slow" in heard
    assert not any(secret in heard for secret in (WORD, KEY))


def test_entries_of_before_are_marked_when_they_change(memory: Lukasa, world: Workspace) -> None:
    """An owner's entry from before the mark is marked at its next change, not redacted."""
    id = world.put("workspace", WIFI, metadata={"sensitive": False}).id
    world.update(id, metadata={"room": "studio"})
    found = world.get(id)
    assert (found.content, found.sensitive) == (WIFI, True)
