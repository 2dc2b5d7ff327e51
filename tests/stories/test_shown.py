"""The disclosure ledger as its owner sees it: what of memory went into which prompt, and what for (B17, B22)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.anthropic import MemoryTool
from lukasa.model.disclosure import DisclosureQuery, Shown
from lukasa.model.errors import Refused
from lukasa.model.job import JobDraft
from lukasa.model.text import estimate_tokens
from lukasa.service.jobs.handlers import run_next
from lukasa.spec import preset_text
from lukasa.storage.operations import Enqueue
from tests.helpers.cli import Shell
from tests.helpers.making import FixedClock
from tests.helpers.mcp import beside, called, lent, wait
from tests.helpers.processes import finish, fork, until
from tests.helpers.server import running
from tests.helpers.sessions import claude

PORT = "The port of staging is 8443"
HELM = "Olga steers the harbour ferry on Mondays"
SESSION = "f3b0c1f6-6a0c-4a5e-9d0e-6f1d5b0c7a11"
READERS, READS = 8, 40
AT = "/v1/workspaces/novel"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none", clock=clock, principal="ada") as opened:
        opened.workspace("novel")
        yield opened


def prompt(shell: Shell, text: str, session: str = SESSION, moment: str = "prompt") -> str:
    """What a hook that runs as a real process adds to a prompt, or to the start of a session."""
    name = "UserPromptSubmit" if moment == "prompt" else "SessionStart"
    event = {"hook_event_name": name, "session_id": session, "prompt": text, "source": "startup", "cwd": "/tmp"}
    done = shell.process("-w", "main", "hook", moment, input=json.dumps(event).encode())
    assert (done.returncode, done.stderr) == (0, b""), done
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""


def test_a_hook_that_injects_is_in_the_ledger(shell: Shell) -> None:
    """B17: one process injects, another one says what it was, to the token; what was given before counts once."""
    id = shell.json("put", PORT)["id"]
    shell.run("named", "edit", "VOICE", "--file", "-", input="Be brief.")
    given = prompt(shell, "which port has staging?")
    assert PORT in given
    assert PORT not in prompt(shell, "which port has staging?")  # the session has it already
    (one,) = shell.json("shown", "--conversation", SESSION)["shown"]
    assert one["tokens"] == estimate_tokens(given)
    assert (one["principal"], one["surface"], one["verb"]) == ("claude-code", "hook", "hook.prompt")
    held = {item["id"]: item for item in one["items"]}
    assert held[id]["version"] == 1
    assert held[id]["tokens"] == estimate_tokens(given[given.index("- Noted") : given.index(PORT) + len(PORT)])
    assert {name for name, item in held.items() if item["page"]} == {"VOICE"}
    assert [row["at"] for row in shell.json("shown", id)["shown"]] == [one["at"]]
    assert shell.json("shown", "--agent", "claude-code")["shown"] == [one]
    assert shell.json("shown", "--agent", "nobody")["shown"] == []
    assert "claude-code" in shell.run("shown", id)


def test_what_the_owner_looks_at_is_in_no_prompt(shell: Shell) -> None:
    """B17: the owner's read, get and list are not listed; a context is, because it is made for a prompt."""
    id = shell.json("put", PORT)["id"]
    for call in (("read", "port"), ("get", id), ("list",), ("history", id)):
        shell.run(*call)
    assert shell.json("shown")["shown"] == []
    text = shell.run("context", "port of staging")
    (one,) = shell.json("shown", id)["shown"]
    assert (one["verb"], one["tokens"]) == ("memory_context", estimate_tokens(text))
    assert shell.json("stats", "--tokens")["by_surface"] == {"cli": one["tokens"]}
    assert shell.fails("shown", "not-an-id", code=2)["code"]
    assert shell.fails("shown", "--conversation", "nobody", code=1)["code"] == "not-found"


def test_an_agent_on_the_command_line_is_told(shell: Shell) -> None:
    """B17: `--agent` says that an agent reads, so what it gets is in a prompt."""
    id = shell.json("put", PORT)["id"]
    assert id in shell.run("--agent", "claude", "read", "port")
    (one,) = shell.json("shown", id)["shown"]
    assert (one["principal"], one["verb"], one["surface"]) == ("claude", "memory_read", "cli")


def test_an_agent_over_mcp_is_told_by_its_grant(memory: Lukasa) -> None:
    """B17: a context and a read by a grant: the agent, the surface, and the tokens of the text that it got."""
    novel = memory.workspace("novel")
    novel.edit_named("VOICE", "Be brief.")
    id = novel.put("workspace", PORT).id

    async def work() -> list[str]:
        async with beside(memory, lent(memory, "read", agent="scout")) as client:
            told = [await client.call_tool("memory_context", {"query": "port of staging"})]
            told.append(await client.call_tool("memory_read", {"query": "port of staging"}))
            told.append(await client.call_tool("memory_get", {"id": id}))
            await called(client, "named_list")
            return [str(answer.content[0].text) for answer in told]  # type: ignore[union-attr]

    texts = wait(work)
    found = novel.shown(id)
    assert [one.verb for one in reversed(found)] == ["memory_context", "memory_read", "memory_get"]
    assert [one.tokens for one in reversed(found)] == [estimate_tokens(text) for text in texts]
    assert {(one.principal, one.surface) for one in found} == {("scout", "mcp")}
    for one in found:
        (mine,) = [item for item in one.items if item.id == id]
        assert 0 < mine.tokens <= one.tokens
    assert [one.verb for one in novel.shown("VOICE")] == ["named_list", "memory_context"]
    with pytest.raises(Refused):
        novel.acting(agent="scout").shown()


def test_http_with_a_token_counts_and_the_page_does_not(memory: Lukasa) -> None:
    """B17: a program's read is listed; what the owner's page shows is not."""
    novel = memory.workspace("novel")
    novel.put("workspace", PORT)
    with running(memory) as house:
        asked, page, bot = {"query": "port of staging"}, house.owner(), house.granted("read", "stats", name="bot")
        assert page.post(f"{AT}/read", asked).status == 200
        assert page.post(f"{AT}/context", asked).status == 200
        assert novel.shown() == []
        answer = bot.post(f"{AT}/read", asked)
        (one,) = novel.shown()
        assert (one.principal, one.surface, one.tokens) == ("bot", "http", estimate_tokens(answer.body.decode()))
        assert [row["principal"] for row in page.get(f"{AT}/shown").json["shown"]] == ["bot"]
        assert page.get(f"{AT}/tokens").json["by_agent"] == {"bot": one.tokens}
        assert (bot.get(f"{AT}/shown").status, bot.get(f"{AT}/tokens").status) == (403, 403)


def test_the_memory_tool_counts_a_view(memory: Lukasa, clock: FixedClock) -> None:
    """B17: a file, an entry and a page that Anthropic's memory tool shows are listed."""
    novel = memory.workspace("novel")
    tool = MemoryTool(novel.acting(agent="claude"))
    tool.call({"command": "create", "path": "/memories/workspace/plan.md", "file_text": PORT})
    text = tool.call({"command": "view", "path": "/memories/workspace/plan.md"})
    clock.time += timedelta(seconds=1)
    tool.call({"command": "view", "path": "/memories/named/SOUL.md"})
    tool.call({"command": "view", "path": "/memories"})
    page, file = novel.shown()
    assert (file.tokens, file.verb, file.surface) == (estimate_tokens(text), "view", "anthropic-memory-tool")
    assert [(item.id, item.page) for item in page.items] == [("SOUL", True)]


def test_an_entry_of_the_account_is_found_from_every_workspace(memory: Lukasa) -> None:
    """B17: the account belongs to all workspaces, so what was sent from one of them is known in the others."""
    novel, essay = memory.workspace("novel"), memory.workspace("essay")
    id = novel.put("account", HELM).id
    told = novel.context("who steers the ferry?")
    (one,) = essay.shown(id)
    assert (one.workspace, essay.shown()) == ("novel", [])
    assert novel.shown()[0].tokens == told.tokens
    assert novel.token_use("1d").tokens == told.tokens
    assert essay.token_use("1d").tokens == 0


def test_what_was_shown_and_never_used(memory: Lukasa, clock: FixedClock, tmp_path: Path) -> None:
    """B22: an entry counts as used if it was read by id, confirmed, built upon, or taken up in the conversation."""
    novel = memory.workspace("novel")
    names = ["never", "confirmed", "derived", "linked", "got", "corrected"]
    ids = {name: novel.put("workspace", f"The {name} lighthouse stands at pier {n}").id for n, name in enumerate(names)}
    for _ in range(3):
        clock.time += timedelta(minutes=1)
        novel.context("lighthouse pier", budget=4000)
    assert {one.entry.id for one in novel.unused("1d")} == set(ids.values())
    clock.time += timedelta(minutes=1)
    novel.corroborate(ids["confirmed"])
    novel.put("workspace", "Piers have lighthouses since the storm", derived_from=[ids["derived"]])
    novel.link_action("ship-1", [ids["linked"]], "shipped by it")
    novel.update(ids["corrected"], content="The corrected lighthouse stands at pier 55")

    async def get() -> None:
        async with beside(memory, lent(memory, "read")) as client:
            await called(client, "memory_get", id=ids["got"])

    wait(get)
    left, names = novel.unused("1d"), names[1:]
    assert not {ids[name] for name in names} & {one.entry.id for one in left}
    (never,) = [one for one in left if one.entry.id == ids["never"]]
    assert (never.times, never.tokens > 0) == (3, True)
    assert novel.unused("1d", times=4) == []


def test_a_memory_that_the_assistant_took_up_was_used(shell: Shell, tmp_path: Path) -> None:
    """B22: its words in an observed session, after it was shown; words of the user prove nothing."""
    used, unused = shell.json("put", PORT)["id"], shell.json("put", "The staging host is called heron")["id"]
    for n in range(3):
        assert PORT in prompt(shell, "", f"s-{n}", "session-start")
    assert {one["entry"]["id"] for one in shell.json("shown", "--unused")["unused"]} == {used, unused}
    said = [("user", "tell me about staging"), ("assistant", "The port is 8443.")]
    file = claude(tmp_path / "s-1.jsonl", said, "s-1")
    file.write_text(file.read_text("utf-8").replace("2026-10-0", "2099-10-0"), "utf-8")
    shell.run("observe", str(file))
    assert [one["entry"]["id"] for one in shell.json("shown", "--unused")["unused"]] == [unused]
    assert "never used" in shell.run("stats", "--tokens")


def spec(**rules: object) -> str:
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in rules.items())
    return f"{preset_text('default')}\n[disclosure]\n{lines}\n"


def test_a_spec_bounds_the_ledger_and_may_do_without(memory: Lukasa, clock: FixedClock) -> None:
    """B17: `keep_days` and `most` are kept by the job `tidy`; without `record` nothing is noted, for a reason."""
    bounded = memory.workspace("bounded", spec=spec(keep_days=2, most=3))
    bounded.put("workspace", PORT)
    for hours in (0, 30, 30, 1, 1, 1):
        clock.time += timedelta(hours=hours)
        bounded.context("port")
    assert len(bounded.shown()) == 6
    bounded.ctx.apply(bounded.ctx.local, Enqueue(JobDraft("tidy", "now")))
    while run_next(bounded.ctx) is not None:
        pass
    assert len(bounded.shown()) == 3
    without = memory.workspace("without", spec=spec(record=False, reason="prompts are logged elsewhere"))
    without.put("workspace", PORT)
    without.context("port")
    assert without.shown() == []


def test_eight_readers_lose_nothing(tmp_path: Path) -> None:
    """B17: processes that read at once and end in order: every text is in the ledger, once."""
    folder = tmp_path / "data"
    with Lukasa.open(folder, embedder="none") as memory:
        id = memory.workspace("novel").put("workspace", PORT).id

    def read(number: int) -> None:
        with Lukasa.open(folder, embedder="none") as mine:
            world = mine.workspace("novel").acting(agent=f"reader-{number}")
            for _ in range(READS):
                world.context("port of staging")

    children = [fork(partial(read, number)) for number in range(READERS)]
    assert [finish(child) for child in children] == [0] * READERS
    with Lukasa.open(folder, embedder="none") as memory:
        found = memory.workspace("novel").ctx.local.disclosures(DisclosureQuery(item=Shown(id, 0, 0)))
    assert len(found) == READERS * READS
    assert {one.principal for one in found} == {f"reader-{number}" for number in range(READERS)}


def test_what_a_process_shows_in_a_burst_is_seen_elsewhere_soon(tmp_path: Path) -> None:
    """B17: the process may read no more for hours; another one sees all of it once the burst is over."""
    data = tmp_path / "data"
    with Lukasa.open(data, embedder="none") as memory:
        world = memory.workspace("novel")
        id = world.put("workspace", PORT).id
        agent = world.acting(agent="claude")
        for _ in range(5):
            agent.context("port of staging")
        with Lukasa.open(data, embedder="none") as elsewhere:
            until(lambda: len(elsewhere.existing("novel").shown(id)) == 5)
