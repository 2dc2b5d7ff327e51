"""Verify before use: what entries cite is pinned and checked at recall, and every surface tells what does not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.citation import CitationVerdict
from lukasa.model.errors import Conflict, InvalidInput, LukasaError, NotFound, OutsideProject
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.values import Trust
from lukasa.service.citations.citing import Cite
from lukasa.spec.load import preset_text
from lukasa.storage.operations import Enqueue, SaveCitations
from tests.helpers import sessions
from tests.helpers.cli import Shell
from tests.helpers.mcp import beside, called, lent, piped, refused, session
from tests.helpers.repository import git
from tests.helpers.server import running
from tests.stories.test_hooks import Harness

AUTH = """import os

HOURS = 1


def login(user):
    token = make_token(user)
    return token


class Settings:
    def load(self):
        return os.environ["MILL_SECRET"]
"""
CLAIM = "Tokens are made in src/auth.py:7 when a user logs in"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "mill"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "auth.py").write_text(AUTH)
    (folder / "README.md").write_text("# Mill\n\nHow to grind.\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "remote", "add", "origin", "https://host.example/team/mill.git")
    return folder


@pytest.fixture
def memory(tmp_path: Path, project: Path) -> Iterator[Lukasa]:
    with Lukasa.open(tmp_path / "data", embedder="none", project=project) as opened:
        yield opened


@pytest.fixture
def world(memory: Lukasa) -> Workspace:
    """A workspace whose reads have time to ask git, however busy the machine is."""
    text = preset_text("default").replace("[retrieval]\n", "[retrieval]\nverify_ms = 20000\n")
    return memory.workspace("novel", spec=text)


def change(project: Path, old: str, new: str, path: str = "src/auth.py") -> None:
    file = project / path
    file.write_text(file.read_text().replace(old, new))


def verdicts(world: Workspace, question: str) -> list[tuple[str, str, str]]:
    (hit, *_) = world.read(question)
    return [(one.citation.spelling, str(one.verdict), one.where) for one in hit.citations]


# Recall


def test_recall_tells_what_became_of_the_lines_it_cites(world: Workspace, project: Path) -> None:
    """B16: verified, then moved by lines above, then changed, then gone; the text of the entry stays as it was."""
    made = world.put("workspace", CLAIM)
    assert (made.cites, made.entry.content if made.entry else "") == (("src/auth.py:7",), CLAIM)
    asked = "where are tokens made?"
    assert verdicts(world, asked) == [("src/auth.py:7", "verified", "")]
    assert "cited=" not in str(world.context(asked))
    change(project, "import os\n", "import os\nimport sys\n")
    assert verdicts(world, asked) == [("src/auth.py:7", "moved", "src/auth.py:8")]
    assert 'cited="src/auth.py:7 moved to src/auth.py:8"' in str(world.context(asked))
    git(project, "mv", "src/auth.py", "src/login.py")
    git(project, "commit", "-qam", "two")
    assert verdicts(world, asked) == [("src/auth.py:7", "moved", "src/login.py:8")]
    change(project, "make_token(user)", "sign(user)", "src/login.py")
    assert verdicts(world, asked) == [("src/auth.py:7", "changed", "src/login.py")]
    assert 'cited="changed since: src/auth.py:7"' in str(world.context(asked))
    git(project, "rm", "-qf", "src/login.py")
    git(project, "commit", "-qm", "three")
    assert verdicts(world, asked) == [("src/auth.py:7", "gone", "")]


def test_symbols_are_found_again_wherever_their_file_has_them(world: Workspace, project: Path) -> None:
    """B16: a definition that stays the same may move in its file and to another one; a changed body is told."""
    world.put("workspace", "The secret comes from the environment", cites=["symbol:src/auth.py:Settings.load"])
    world.put("workspace", "The constant `src.auth.HOURS` is short")
    change(project, "import os\n", "import os\n\n\ndef first():\n    pass\n")
    assert verdicts(world, "secret environment")[0][1] == verdicts(world, "constant short")[0][1] == "verified"
    text = (project / "src" / "auth.py").read_text()
    (project / "src" / "auth.py").write_text(text.split("class Settings")[0])
    (project / "src" / "config.py").write_text("import os\n\n\nclass Settings" + text.split("class Settings")[1])
    found = world.verify_citations()
    (moved,) = [one for entry in found.entries for one in entry.citations if one.citation.name == "Settings.load"]
    assert (str(moved.verdict), moved.where) == ("moved", "src/config.py:5")
    change(project, "MILL_SECRET", "MILL_KEY", "src/config.py")
    assert verdicts(world, "secret environment")[0][1] in ("changed", "gone")


@pytest.mark.parametrize(
    ("name", "before", "symbol", "after", "verdict"),
    [
        ("a.ts", "export function grind(n: number) {\n  return n\n}\n", "grind", "// new\n", "verified"),
        ("a.rs", "impl Mill {\n    pub fn grind(&self) -> u8 {\n        1\n    }\n}\n", "Mill::grind", "", "changed"),
        ("a.go", "func (m *Mill) Grind(n int) int {\n\treturn n\n}\n", "Grind", "package a\n", "verified"),
        ("a.sh", "grind() {\n  echo 1\n}\n", "grind", "", "changed"),
    ],
)
def test_other_languages_have_symbols_too(
    world: Workspace, project: Path, name: str, before: str, symbol: str, after: str, verdict: str
) -> None:
    """B16: outside of Python a definition is found by its first word and its indentation."""
    (project / name).write_text(before)
    spelled = symbol.replace("::", ".")
    world.put("workspace", "The mill grinds by itself", cites=[f"symbol:{name}:{spelled}"])
    assert verdicts(world, "mill grinds")[0][1] == "verified"
    (project / name).write_text(after + before if verdict == "verified" else before.replace("1", "2"))
    assert verdicts(world, "mill grinds")[0][1] == verdict


def test_an_entry_cites_memory_and_documents(world: Workspace) -> None:
    """B16, M9: a cited entry that is replaced or forgotten shows; a cited document is a link, told beside it."""
    world.save_document("guide", "Two people review each change.")
    base = world.put("workspace", "Reviews take two people")
    top = world.put("workspace", "So a change waits a day", cites=[f"memory:{base.id}", "document:guide"])
    assert top.entry is not None
    assert [link.source for link in top.entry.links] == ["guide"]
    seen = world.citations(top.id)
    assert [str(one.verdict) for one in seen.citations] + [one.status for one in seen.documents] == [
        "verified",
        "current",
    ]
    newer = world.put("workspace", "Reviews take three people", supersedes=base.id)
    (cited,) = world.citations(top.id).citations
    assert (str(cited.verdict), cited.where) == ("changed", newer.id)
    world.undo(newer.id)
    world.forget(base.id)
    assert [str(one.verdict) for one in world.citations(top.id).citations] == ["gone"]
    world.remove_document("guide")
    assert world.verify_citations(top.id).counts["gone"] == 2


def test_an_entry_cites_a_passage_of_the_corpus(world: Workspace) -> None:
    """B16: pinned by its text: another place in the document is a move, another text a change, a removal is the end."""
    guide = "# Guide\n\n## Login\n\nLogins need a token.\n\n## Logout\n\nLogout clears it.\n"
    world.save_document("guide", guide)
    number = next(hit.number for hit in world.search_corpus("logout clears") if "clears" in hit.text)
    id = world.put("workspace", "Leaving takes the token away", cites=[f"document:guide#{number}"]).id

    def now() -> tuple[str, str, str]:
        (one,) = world.read("leaving token")[0].citations
        return str(one.verdict), one.where, one.said

    assert now() == ("verified", "", "")
    world.save_document("guide", guide.replace("need a token", "need two tokens"))
    assert now() == ("verified", "", "")
    world.save_document("guide", "# Guide\n\n## First\n\nRead this.\n" + guide.removeprefix("# Guide\n"))
    assert now() == ("moved", f"guide#{number + 1}", f"guide#{number} moved to guide#{number + 1}")
    world.save_document("guide", guide.replace("clears it", "keeps it"))
    assert now() == ("changed", "", f"changed since: guide#{number}")
    assert "cited=" in str(world.context("leaving token"))
    world.verify_citations(everything=True)
    assert "has changed" in world.inbox().doubtful[0].why
    world.cite(id, again=True)
    assert now()[0] == "verified"
    world.remove_document("guide")
    assert now() == ("gone", "", f"gone: guide#{number}")
    with pytest.raises(NotFound):
        world.cite(id, "document:guide#0")
    world.save_document("issue #7", "Not a passage.")
    assert world.put("workspace", "The seventh issue is about passages", cites=["document:issue #7"]).entry.links  # type: ignore[union-attr]
    world.save_document("mills", "The mill stands.")
    with pytest.raises(NotFound, match="has no passage 9"):
        world.cite(id, "document:mills#9")


def test_commands_and_urls_are_never_run_or_fetched_by_a_read(world: Workspace, project: Path) -> None:
    """B16: they are unchecked, and say why; an output that somebody gives is compared."""
    world.put("workspace", "The mill builds", cites=[Cite("command:touch ran", "done\n"), "https://host.example/mill"])
    (hit,) = world.read("mill builds")
    told = {one.citation.spelling: (str(one.verdict), one.why) for one in hit.citations}
    assert told["command:touch ran"] == ("unchecked", "it is not run unless you ask")
    assert told["url:https://host.example/mill"] == ("unchecked", "it is not fetched unless you ask")
    assert not (project / "ran").exists()
    (command, _) = hit.citations
    for output, verdict in (("done", "verified"), ("failed", "changed")):
        found = world.verify_citations(hit.id, outputs={command.citation.id: output})
        assert str(found.entries[0].citations[0].verdict) == verdict
    assert str(world.read("mill builds")[0].citations[0].verdict) == "changed"  # the last check still counts


def test_a_budget_of_time_bounds_what_a_read_checks(memory: Lukasa, project: Path) -> None:
    """B16, `verify_ms`: with none, nothing is checked, and what the last check found amiss is still told."""
    text = preset_text("default")
    none = text.replace("[retrieval]\n", "[retrieval]\nverify_ms = 0\n")
    worlds = [memory.workspace("checks", spec=text), memory.workspace("trusts", spec=none)]
    for world in worlds:
        world.put("workspace", CLAIM)
    change(project, "make_token", "sign")
    assert [verdicts(world, "tokens made")[0][1] for world in worlds] == ["changed", "unchecked"]
    worlds[1].verify_citations()
    assert verdicts(worlds[1], "tokens made")[0][1] == "changed"


# Whose files


def test_another_clone_verifies_and_another_project_does_not(world: Workspace, project: Path, tmp_path: Path) -> None:
    """B16, B19: a citation knows its project by the repository: a clone elsewhere checks it, a stranger says so."""
    world.put("workspace", CLAIM)
    clone = tmp_path / "elsewhere" / "renamed"
    git(tmp_path, "clone", "-q", str(project), str(clone))
    git(clone, "remote", "set-url", "origin", "git@host.example:team/mill")
    change(clone, "make_token", "sign")
    there = world.in_project(str(clone))
    assert verdicts(there, "tokens made") == [("src/auth.py:7", "changed", "")]
    assert verdicts(world, "tokens made") == [("src/auth.py:7", "verified", "")]
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    (other / "src" / "auth.py").write_text("nothing of the kind\n")
    git(other, "init", "-q")
    for folder, why in ((str(other), "another project is at hand"), ("", "no project is at hand")):
        (hit,) = world.in_project(folder).read("tokens made")
        (one,) = hit.citations
        assert (str(one.verdict), one.why, one.last_verified is not None) == ("unchecked", why, True)


@pytest.mark.parametrize(
    ("cite", "error"),
    [
        ("../secret.txt", OutsideProject),
        ("/etc/passwd", OutsideProject),
        ("file:src/none.py", NotFound),
        ("src/auth.py:900", InvalidInput),
        ("src/auth.py:9-3", InvalidInput),
        ("symbol:src/auth.py:Nobody", NotFound),
        ("symbol:src/auth.py", InvalidInput),
        ("url:ftp://host/x", InvalidInput),
        ("memory:nobody", InvalidInput),
        ("document:none", NotFound),
        ("command:", InvalidInput),
        ("", InvalidInput),
        ("a\nb", InvalidInput),
    ],
)
def test_what_cannot_be_cited_is_an_error_and_nothing_is_written(
    world: Workspace, cite: str, error: type[LukasaError]
) -> None:
    """W9: the error says what to change."""
    before = world.ctx.local.head()
    with pytest.raises(error) as caught:
        world.put("workspace", "The mill stands", cites=[cite])
    assert caught.value.fix
    assert world.ctx.local.head() == before


def test_rules_cite_nothing_outside_of_the_project(world: Workspace, tmp_path: Path) -> None:
    """B16: a sentence may name other people's files; they are not looked at, and the sentence is kept."""
    (tmp_path / "secret.txt").write_text("x\n")
    made = world.put("workspace", f"Keys are in ../secret.txt, {tmp_path}/secret.txt, /etc/passwd and src/none.py")
    assert (made.outcome, made.cites, world.citations(made.id).citations) == ("stored", (), ())


# Changing what is cited


def test_saying_that_it_holds_pins_what_is_there_now(world: Workspace, project: Path) -> None:
    """B16: confirmed, stated again or cited again, the entry holds against the present lines."""
    id = world.put("workspace", CLAIM).id
    for again in (
        lambda: world.corroborate(id),
        lambda: world.put("workspace", CLAIM),
        lambda: world.cite(id, again=True),
        lambda: world.approve(id),
    ):
        change(project, "make_token(", "make_token(1 + ")
        assert world.verify_citations(id).amiss
        assert [one.entry.id for one in world.inbox().doubtful] == [id]
        again()
        assert verdicts(world, "tokens made")[0][1] == "verified"
        assert world.inbox().doubtful == ()
    assert world.check() == []


def test_a_new_text_is_looked_through_again(world: Workspace) -> None:
    """B16: an edit drops what the rules cited for the old text, and keeps what the writer cited."""
    id = world.put("workspace", CLAIM, cites=["symbol:src/auth.py:login"]).id
    world.update(id, content="Tokens are explained in README.md")
    assert [one.citation.spelling for one in world.citations(id).citations] == ["symbol:src/auth.py:login", "README.md"]
    world.cite(id, "src/auth.py", drop=["README.md"])
    assert [one.citation.label for one in world.citations(id).citations] == ["src/auth.py:login", "src/auth.py"]
    with pytest.raises(InvalidInput):
        world.cite(id, drop=["README.md"])


def test_nobody_changes_what_a_more_trusted_entry_cites(world: Workspace) -> None:
    """W5: an untrusted caller neither cites for others' entries nor pins them anew; two looks at once conflict."""
    id = world.put("workspace", CLAIM).id
    stranger = world.acting(agent="crawler")
    from_web = stranger.acting(trust=Trust.UNTRUSTED)
    for cites, again in ((["README.md"], False), ([], True)):
        with pytest.raises(LukasaError):
            from_web.cite(id, *cites, again=again)
    with pytest.raises(Conflict):
        world.ctx.apply(world.ctx.local, SaveCitations(id, ()))


def test_the_log_says_when_a_verdict_changed_and_never_what(world: Workspace, project: Path) -> None:
    """B16: checks leave an event only when the verdict is another one, without a path or a text."""
    id = world.put("workspace", CLAIM).id
    for _ in range(2):
        world.verify_citations()
    change(project, "make_token", "sign")
    for _ in range(2):
        world.verify_citations()
    told = [event for event in world.ledger(id) if event.action.startswith("citation.")]
    assert [event.action for event in told] == ["citation.made", "citation.checked"]
    assert (told[1].detail["verdict"], told[1].detail["was"]) == ("changed", "verified")
    assert "auth" not in json.dumps([event.detail for event in told])
    assert world.check() == []


def test_a_worker_checks_where_the_project_last_was(
    tmp_path: Path, memory: Lukasa, world: Workspace, project: Path
) -> None:
    """B16: a worker has no project at hand; a file of the machine tells the folder, and the inbox lists it."""
    id = world.put("workspace", CLAIM).id
    change(project, "make_token", "sign")
    assert [one["changed"] for one in work(memory, world)] == [1]
    assert [(one.entry.id, "src/auth.py:7 has changed" in one.why) for one in world.inbox().doubtful] == [(id, True)]
    (tmp_path / "data" / "projects.json").unlink()
    assert [(one["unchecked"], one["changed"]) for one in work(memory, world)] == [(0, 1)]  # the last check counts
    world.cite(id, again=True)
    (tmp_path / "data" / "projects.json").unlink(missing_ok=True)
    assert [(one["unchecked"], one["changed"]) for one in work(memory, world)] == [(1, 0)]


def work(memory: Lukasa, world: Workspace) -> list[dict[str, Any]]:
    """What a worker's verification finds that was started in no project."""
    world.ctx.apply(world.ctx.local, Enqueue(JobDraft("verify", f"verify:{new_id()}")))
    with Lukasa.open(memory.settings.data, embedder="none", project="") as service:
        return [dict(one.result) for one in service.worker().drain() if one.job.kind == "verify"]


# Surfaces


def test_the_command_line_tells_and_fails(tmp_path: Path, project: Path) -> None:
    """B16: `put --cite`, `cite`, `verify` with a table and an exit code, and the next step in words."""
    shell = Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_PROJECT": str(project / "src")})
    made = shell.json("put", "The secret is in the environment", "--cite", "symbol:src/auth.py:Settings.load")
    assert made["cites"] == ["symbol:src/auth.py:Settings.load"]
    shell.run("put", CLAIM)
    assert "2 entries: 2 verified" in shell.run("verify")
    change(project, "MILL_SECRET", "MILL_KEY")
    told = shell.call("verify")
    assert (told.exit_code, "changed" in told.output, "lukasa cite ID --again" in told.output) == (1, True, True)
    data = shell.json("verify", "--all", code=1)
    assert data["counts"]["changed"] == 1
    hit = shell.json("read", "secret environment")["hits"][0]
    assert [one["verdict"] for one in hit["citations"]] == ["changed"]
    assert "changed" in shell.run("read", "secret environment")
    assert "cites" in shell.run("get", made["id"])
    assert "what it cites is not what it was" in shell.run("review", "list")
    assert "pinned" in shell.run("cite", made["id"], "--again")
    assert shell.json("verify")["counts"]["changed"] == 0
    refusal = shell.call("cite", made["id"], "../x", "--json")
    assert (refusal.exit_code != 0, json.loads(refusal.stdout)["error"]["code"]) == (True, "outside-project")


def test_a_cited_command_runs_only_when_asked_and_shown(tmp_path: Path, project: Path) -> None:
    """B16: `verify --run` shows each command and asks; no is the default answer."""
    shell = Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_PROJECT": str(project)})
    id = shell.json("put", "The mill prints its name")["id"]
    shell.run("cite", id, "command:touch ran; echo mill", "--output", "-", input="mill\n")
    shell.run("verify", "--all")
    declined = shell.call("verify", "--all", "--run", input="n\n")
    assert "touch ran; echo mill" in declined.output
    assert not (project / "ran").exists()
    assert shell.json("verify", id, "--run", "--yes")["counts"]["verified"] == 1
    assert (project / "ran").exists()
    shell.run("cite", id, "command:touch ran; echo mill", "--output", "-", input="another\n")
    assert shell.json("verify", id, "--run", "--yes", code=1)["counts"]["changed"] == 1


def test_mcp_clients_cite_verify_and_read_verdicts(memory: Lukasa, world: Workspace, project: Path) -> None:
    """B16: the same over MCP; hits carry `citations` only if there are some, and none of the hashes."""
    world.put("workspace", "The owner likes rye")

    async def work(client: Any) -> Any:
        made = await called(client, "memory_put", content=CLAIM, cites=["symbol:src/auth.py:login"])
        assert made["cites"] == ["symbol:src/auth.py:login", "src/auth.py:7"]
        change(project, "make_token", "sign")
        hits = (await called(client, "memory_read", query="tokens made"))["hits"]
        plain = (await called(client, "memory_read", query="owner rye"))["hits"][0]
        found = await called(client, "memory_verify")
        again = await called(client, "memory_cite", id=made["id"], again=True)
        assert "outside" in await refused(client, "memory_cite", id=made["id"], cites=["/etc/passwd"])
        return hits[0]["citations"], plain["citations"], found, again

    cited, plain, found, again = session(lambda: beside(memory, lent(memory)), work)
    assert [(one["cites"], one["verdict"]) for one in cited] == [
        ("symbol:src/auth.py:login", "changed"),
        ("src/auth.py:7", "changed"),
    ]
    assert plain is None
    assert (found["counts"]["changed"], found["entries"][0]["amiss"], again["amiss"]) == (2, True, False)
    assert "hash" not in json.dumps([cited, found])


def test_a_piped_server_has_its_folder_at_hand(tmp_path: Path, project: Path) -> None:
    """B16: `lukasa mcp` pins files of LUKASA_PROJECT, or of the folder that it was started in."""
    shell = Shell(tmp_path / "data")
    shell.run("workspace", "list")

    async def work(client: Any) -> Any:
        return await called(client, "memory_put", content=CLAIM)

    made = session(lambda: piped(shell, LUKASA_PROJECT=str(project)), work)
    assert made["cites"] == ["src/auth.py:7"]


def test_a_server_has_no_project_unless_it_is_named(tmp_path: Path, project: Path) -> None:
    """B16: over HTTP, nobody learns of files of the machine unless the owner named the project."""
    for folder, status in (("", 422), (str(project), 201)):
        with Lukasa.open(tmp_path / f"data{status}", embedder="none", project=folder) as memory:
            memory.workspace("novel")
            with running(memory) as server:
                client = server.granted("read", "write")
                made = client.post("/v1/workspaces/novel/entries", {"content": CLAIM, "cites": ["README.md"]})
                assert made.status == status, made.body
                if status == 201:
                    assert made.json["cites"] == ["README.md", "src/auth.py:7"]
                    assert client.post("/v1/workspaces/novel/verify", {}).json["counts"]["verified"] == 2
                plain = client.post("/v1/workspaces/novel/entries", {"content": "Grain is in src/auth.py now"})
                assert (plain.status, plain.json["cites"] is None) == (201, status == 422)


def test_a_hook_tells_what_has_changed_since(tmp_path: Path, project: Path) -> None:
    """B8, B16: the project is the event's folder; a passage comes again when something it cites has changed."""
    harness = Harness(Shell(tmp_path / "data"), project)
    harness.starts()
    name = json.loads(harness.shell.run("hook", "workspace", str(project), "--json"))["workspace"]
    with Lukasa.open(tmp_path / "data", embedder="none", project=project) as memory:
        memory.workspace(name).put("workspace", CLAIM)
    assert "cited=" not in harness.asks("where are tokens made?")
    assert harness.asks("where are tokens made?") == ""
    change(project, "make_token", "sign")
    assert 'cited="changed since: src/auth.py:7"' in harness.asks("where are tokens made?")


def test_what_is_observed_in_a_session_cites_its_project(tmp_path: Path, memory: Lukasa, project: Path) -> None:
    """B16, W1: a session file of Claude Code says its folder; its facts cite the files there, if it is under git."""
    said = "From now on always keep the token code in src/auth.py."
    for n, folder in enumerate((str(project), str(tmp_path / "plain"))):
        Path(folder).mkdir(exist_ok=True)
        (Path(folder) / "src").mkdir(exist_ok=True)
        (Path(folder) / "src" / "auth.py").touch()
        world = memory.workspace(f"w{n}").in_project("")
        path = tmp_path / f"{n}.jsonl"
        path.write_text(sessions.claude_line("user", said, 0, f"s-{n}", cwd=folder))
        world.observe(str(path))
        memory.worker().drain()
        cited = world.ctx.local.newest_citations(limit=9)
        assert [one.target for one in cited] == (["src/auth.py"] if n == 0 else [])


def test_other_readers_see_no_more_than_the_entry(memory: Lukasa, world: Workspace, project: Path) -> None:
    """W5: what a sensitive entry cites is not told to agents, and paths pass the gates like texts."""
    world.put("workspace", "The key of src/auth.py is hunter2-AKIAABCDEFGHIJKLMNOP", metadata={"sensitive": True})
    agent = world.acting(agent="helper")
    found = [one for hit in agent.read("key", sensitive=True) for one in hit.citations]
    assert found == []
    assert CitationVerdict.VERIFIED in [one.verdict for hit in world.read("key") for one in hit.citations]
