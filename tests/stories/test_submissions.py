"""The submit boundary: nothing goes from memory into the corpus unless a person accepts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.client import Client

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import (
    DocumentMoved,
    InvalidInput,
    InvalidTransition,
    NotFound,
    Refused,
)
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.submission import How, SubmissionState
from lukasa.model.values import State
from lukasa.service.jobs.handlers import run_next
from lukasa.storage.operations import Enqueue
from lukasa.surfaces.api.table import BY_NAME
from lukasa.surfaces.api.verb import Call
from tests.helpers.cli import Shell
from tests.helpers.mcp import beside, called, lent, refused, session
from tests.helpers.server import running

pytestmark = pytest.mark.usefixtures("engine")

GUIDE = "# Deploys\n\nRun make.\n\n## Staging\n\nThe port is 80.\n\n## Production\n\nAsk Ada.\n"
PORT = "The port of staging is 8443 since May"


@pytest.fixture
def guide(world: Workspace) -> Workspace:
    world.save_document(
        "deploys", GUIDE, title="Deploys", lifecycle="draft", weight=0.7, standing="house rule", tags=["ops"]
    )
    return world


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    found = Shell(tmp_path / "data")
    found.run("workspace", "list")
    return found


def learned(world: Workspace, text: str = PORT, **more: object) -> str:
    return world.put("workspace", text, **more).id  # type: ignore[arg-type]


def submitted(world: Workspace, memory: str, **more: object) -> str:
    asked = {"replaces": "The port is 80.", "derivable": [memory], **more}
    return world.acting(agent="claude").submit("deploys", "The port is 8443.", memories=[memory], **asked).id  # type: ignore[arg-type]


def body(world: Workspace) -> str:
    return world.get_document("deploys").body


# What becomes of it


def test_nothing_changes_until_a_person_accepts(guide: Workspace) -> None:
    """K5: a submission is neither in the document nor in a search of the corpus; an agent cannot accept it."""
    memory = learned(guide)
    id = submitted(guide, memory)
    assert body(guide) == GUIDE
    assert not any("8443" in hit.text for hit in guide.search_corpus("port of staging"))
    for agent in (guide.acting(agent="claude"), guide.acting(trust=Trust.UNTRUSTED), guide.acting(trust=Trust.AGENT)):
        for attempt in (agent.approve, agent.reject, agent.undo):
            with pytest.raises((Refused, NotFound)):
                attempt(id)
    assert guide.get_document("deploys").version == 1
    assert guide.get_submission(id).state is SubmissionState.OPEN


def test_the_words_of_memories_stand_in_for_a_sentence_as_a_sentence(guide: Workspace) -> None:
    """K5: without a text, the memories' own words take the form of what they replace; added, they are a list."""
    port, leave = learned(guide), learned(guide, "Ada is on leave in June")
    guide.approve(guide.submit("deploys", memories=[port], replaces="The port is 80.").id)
    assert body(guide) == GUIDE.replace("The port is 80.", f"{PORT}.")
    guide.approve(guide.submit("deploys", memories=[leave], under="Production").id)
    assert body(guide) == GUIDE.replace("The port is 80.", f"{PORT}.") + "\n- Ada is on leave in June\n"


def test_accepted_it_is_a_version_and_linked_both_ways(guide: Workspace) -> None:
    """K5: the version, its passages and its axes; the memory it made unnecessary is retired with that reason."""
    port, leave = learned(guide), learned(guide, "Ada is on leave in June")
    made = guide.acting(agent="claude").submit(
        "deploys", "The port is 8443.", memories=[port, leave], replaces="The  port\nis 80.", derivable=[port]
    )
    done = guide.approve(made.id, reason="right")
    document = guide.get_document("deploys")
    assert document.body == GUIDE.replace("The port is 80.", "The port is 8443.")
    before = guide.get_document("deploys", 1)
    assert [getattr(document, axis) for axis in ("origin", "lifecycle", "weight", "standing", "title")] == [
        getattr(before, axis) for axis in ("origin", "lifecycle", "weight", "standing", "title")
    ]
    (hit,) = [hit for hit in guide.search_corpus("port 8443", tags=["ops"]) if "8443" in hit.text]
    assert hit.version == 2
    assert done.submission is not None
    assert (done.outcome, done.submission.accepted, done.submission.retired) == ("accepted", 2, (port,))
    assert [s.id for s in guide.submissions(document="deploys", state="accepted")] == [made.id]
    assert [s.id for s in guide.submissions(memory=leave)] == [made.id]
    (event,) = guide.events(action="submission.accepted")
    assert (event.detail["document"], event.detail["accepted"], event.detail["memories"]) == (
        "deploys",
        2,
        [port, leave],
    )
    retired = guide.get(port)
    assert (retired.state, guide.get(leave).state) == (State.ARCHIVED, State.ACTIVE)
    assert "document deploys, version 2" in guide.history(port)[-1].cause
    assert guide.grounds(port).actions == guide.grounds(leave).actions == ("document deploys, version 2",)
    assert port not in [hit.id for hit in guide.read("port of staging")]
    assert guide.restore(port).entry.state is State.ACTIVE  # type: ignore[union-attr]


def test_a_person_accepts_other_words_and_chooses_what_to_retire(guide: Workspace) -> None:
    """K5: edited, and only what the person confirms is retired; never more than it rests on."""
    port, other = learned(guide), learned(guide, "The lantern of the quay is green")
    with pytest.raises(InvalidInput, match="does not rest on"):
        guide.approve(submitted(guide, port), retire=[other])
    id = submitted(guide, port)
    done = guide.approve(id, text="The port is 8443 since May.", retire=[])
    assert "The port is 8443 since May." in body(guide)
    assert done.submission is not None
    assert (done.submission.edited, done.submission.change.text) == (True, "The port is 8443.")
    assert guide.get(port).state is State.ACTIVE


def test_an_exempt_memory_is_not_retired(memory: Lukasa) -> None:
    """K5: what somebody decided must not fade stays, also if the submission names it; by hand, it is refused."""
    world = memory.workspace("desk", preset="anchored").at(org_id="acme", domain_id="ops")
    whole = memory.existing("desk")
    whole.save_document("deploys", GUIDE)
    kept = world.put("persistent", PORT, kind="semantic", metadata={"disposition": "exempt"}).id
    id = whole.submit("deploys", "The port is 8443.", memories=[kept], under="Staging", derivable=[kept]).id
    (card,) = whole.inbox().submissions
    assert (card.retires, [left.id for left in card.kept]) == ((), [kept])
    with pytest.raises(Refused, match="exempt"):
        whole.approve(id, retire=[kept])
    done = whole.approve(id)
    assert [left.reason for left in done.kept] == ["is exempt: somebody decided that it must not fade"]
    assert whole.get(kept).state is State.ACTIVE


def test_rejected_it_is_kept_with_the_reason(guide: Workspace) -> None:
    """K5: the agent that submits the same again is told why not; the author can still accept it."""
    memory = learned(guide)
    id = submitted(guide, memory)
    assert submitted(guide, memory) == id
    guide.reject(id, "the port is secret")
    assert guide.inbox().submissions == ()
    assert guide.acting(agent="claude").get_submission(id).reason == "the port is secret"
    with pytest.raises(Refused, match="the port is secret"):
        submitted(guide, memory)
    assert guide.approve(id).outcome == "accepted"
    with pytest.raises(InvalidTransition):
        guide.reject(id)


def test_a_document_that_changed_meanwhile_is_a_conflict_with_the_difference(guide: Workspace) -> None:
    """K5: a plain accept is refused; a person who gives the version that they have seen edits onto it."""
    id = submitted(guide, learned(guide))
    guide.save_document("deploys", GUIDE.replace("Ask Ada.", "Ask Bo."))
    (card,) = guide.inbox().submissions
    assert [(run.kind, run.text) for run in card.since if run.kind != "same"] == [("removed", "Ada."), ("added", "Bo.")]
    with pytest.raises(DocumentMoved) as moved:
        guide.approve(id)
    assert "[-Ada.-]{+Bo.+}" in moved.value.diff
    with pytest.raises(DocumentMoved):
        guide.approve(id, onto=1)
    guide.save_document("deploys", GUIDE.replace("The port is 80.", "Nobody knows the port."))
    with pytest.raises(DocumentMoved, match="does not hold"):
        guide.approve(id, text="The port is 8443.", onto=3)
    (card,) = guide.inbox().submissions
    assert "give the whole text" in card.trouble
    whole = GUIDE.replace("The port is 80.", "Nobody knows the port, but 8443 works.")
    assert guide.approve(id, text=whole, whole=True, onto=3).document.version == 4  # type: ignore[union-attr]
    assert body(guide) == whole


def test_a_long_text_is_told_by_what_changes(world: Workspace) -> None:
    """K5: long stretches that stay or go are shortened, what comes is shown; a list has the beginning of a text."""
    lines = "".join(f"Line {n} of the log of the quay.\n" for n in range(4_000))
    world.save_document("log", lines)
    memory = learned(world)
    world.submit("log", "The quay is closed.", memories=[memory], replaces="Line 2000 of the log of the quay.")
    world.submit("log", "All of it is wrong.\n" * 300, memories=[memory], whole=True)
    part, whole = world.inbox().submissions
    assert "closed" in str([run.text for run in part.changes if run.kind == "added"])
    assert sum(len(run.text) for run in part.changes) < 2_000
    assert sum(len(run.text) for run in whole.changes) < 8_000
    verb = BY_NAME["corpus_submissions"]
    listed = verb.run(Call(None, None, world), verb.input()).submissions  # type: ignore[arg-type,attr-defined]
    assert [(len(one.change.text), one.change.cut) for one in listed] == [(19, False), (4_000, True)]


def test_a_whole_text_never_replaces_a_later_version_unseen(guide: Workspace) -> None:
    """K5: what somebody else wrote meanwhile is not lost by a click."""
    memory = learned(guide)
    id = guide.submit("deploys", "# Deploys\n\nAll is new.\n", memories=[memory], whole=True).id
    guide.save_document("deploys", GUIDE + "\nBo wrote this.\n")
    with pytest.raises(DocumentMoved, match="would replace all of it"):
        guide.approve(id, onto=2)
    assert "Bo wrote this." in body(guide)


def test_a_new_document_begins_with_an_agents_axes(world: Workspace) -> None:
    """K5: its text is the memories' own words; its standing is not that of the author's documents."""
    one, two = learned(world), learned(world, "Ada approves deploys")
    made = world.acting(agent="claude").submit("notes", memories=[one, two], title="Notes", collection="learned")
    assert made.base == 0
    world.approve(made.id)
    document = world.get_document("notes")
    assert document.body == f"- {PORT}\n- Ada approves deploys"
    assert (document.origin, document.weight, document.standing) == ("claude", 0.5, "submitted")
    assert (document.title, document.collection) == ("Notes", "learned")
    mine = world.approve(world.submit("mine", memories=[one]).id).document
    assert mine is not None
    assert (mine.origin, mine.weight, mine.standing) == ("author", 1.0, "canonical")


def test_undo_restores_the_document_and_the_memories(guide: Workspace) -> None:
    """K5, H2: by the submission's id or the event's number; it waits again, and can be accepted again."""
    port = learned(guide)
    id = submitted(guide, port)
    guide.approve(id)
    done = guide.undo(id)
    assert (done.document, done.ids) == ("deploys", (port,))
    assert (body(guide), guide.get_document("deploys").version) == (GUIDE, 3)
    assert guide.get(port).state is State.ACTIVE
    assert [card.submission.id for card in guide.inbox().submissions] == [id]
    guide.approve(id)
    assert guide.get_submission(id).accepted == 4
    (*_, event) = guide.events(action="submission.accepted")
    guide.undo(event.seq)
    assert body(guide) == GUIDE
    with pytest.raises(InvalidTransition):
        guide.undo(event.seq)


def test_undo_of_a_new_document_removes_it_and_acceptances_unwind_in_order(guide: Workspace) -> None:
    """H2: a later change is taken back first; what somebody restored by hand is left alone."""
    port, leave = learned(guide), learned(guide, "Ada is on leave in June")
    first, second = submitted(guide, port), guide.submit("deploys", memories=[leave], under="Production").id
    guide.approve(first)
    guide.approve(second, text="- Ada is on leave in June", onto=2)
    with pytest.raises(DocumentMoved, match="changed again"):
        guide.undo(first)
    guide.undo(second)
    guide.restore(port)
    done = guide.undo(first)
    assert [(left.id, left.reason) for left in done.kept] == [(port, "has changed since")]
    assert body(guide) == GUIDE
    new = guide.submit("mills", memories=[leave]).id
    guide.approve(new)
    guide.undo(new)
    with pytest.raises(NotFound):
        guide.get_document("mills")
    assert guide.approve(new).document.version == 3  # type: ignore[union-attr]


# What may be submitted


def test_what_cannot_be_submitted_is_told_with_what_to_change(guide: Workspace) -> None:
    """K5: places, memories and texts that do not fit; nothing is stored."""
    port = learned(guide)
    gone = guide.forget(learned(guide, "The quay burned down")).id
    agent = guide.acting(agent="claude")
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    wrong: tuple[tuple[type[Exception], str, dict[str, object]], ...] = (
        (InvalidInput, "no heading", {"under": "Stagings"}),
        (InvalidInput, "does not hold", {"replaces": "The port is 81."}),
        (InvalidInput, "one place", {"under": "Staging", "whole": True}),
        (InvalidInput, "rests on no memory", {"memories": []}),
        (InvalidInput, "not among the memories", {"derivable": [gone]}),
        (InvalidTransition, "forgotten", {"memories": [gone]}),
        (NotFound, "no entry", {"memories": [new_id()]}),
        (NotFound, "no document", {"document": "mills", "under": "Staging"}),
        (Refused, "secret", {"text": f"use {secret[:40]}"}),
        (Refused, "says so already", {"replaces": "Run make.", "text": "Run  make."}),
    )
    for kind, said, change in wrong:
        asked = {"document": "deploys", "text": "The port is 8443.", "memories": [port], **change}
        with pytest.raises(kind, match=said):
            agent.submit(**asked)  # type: ignore[arg-type]
    with pytest.raises(Refused):
        guide.acting(trust=Trust.UNTRUSTED).submit("deploys", "x", memories=[port])
    assert guide.submissions() == []


def test_headings_are_found_by_their_path_and_code_is_none(world: Workspace) -> None:
    """K5: two sections of one name are told apart; a line of code that looks like a heading is none."""
    text = (
        "# A\n\n## Install\n\n```\n# Install\n```\n\nFor A.\n\nB\n=\n\n## Install ##\n\nFor B.\n\n### Deep\n\nBelow.\n"
    )
    world.save_document("ab", text)
    memory = learned(world)
    with pytest.raises(InvalidInput, match="2 headings") as found:
        world.submit("ab", "New.", memories=[memory], under="install")
    assert "“A › Install”, “B › Install”" in found.value.fix
    world.approve(world.submit("ab", "New.", memories=[memory], under="B › Install").id)
    assert world.get_document("ab").body == text.replace("For B.\n", "For B.\n\nNew.\n")


def test_a_secret_of_the_owner_in_a_document_survives(world: Workspace) -> None:
    """T56: an agent reads marks, so its whole text would overwrite the secret; a part of the document may change."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    world.save_document("deploys", f"{GUIDE}\nThe token is {secret[:40]}\n")
    agent, memory = world.acting(agent="claude"), learned(world)
    read = agent.get_document("deploys").body
    assert secret[:40] not in read
    with pytest.raises(Refused, match="would remove"):
        agent.submit("deploys", read.replace("80", "8443"), memories=[memory], whole=True)
    world.approve(agent.submit("deploys", "The port is 8443.", memories=[memory], replaces="The port is 80.").id)
    assert secret[:40] in body(world)


# Who sees it, and what goes with a memory


def test_a_forgotten_memory_is_told_and_hidden_from_others(guide: Workspace) -> None:
    """K5: the author sees what became of the memory; an agent reads its words nowhere."""
    memory = learned(guide)
    id = submitted(guide, memory)
    guide.forget(memory, "it was wrong")
    (card,) = guide.inbox().submissions
    assert [(left.id, "forgotten" in left.reason, "it was wrong" in left.reason) for left in card.kept] == [
        (memory, True, True)
    ]
    assert card.retires == ()
    assert "8443" not in str(guide.acting(agent="claude").get_submission(id))
    assert guide.get_submission(id).change.text == "The port is 8443."


def test_a_scrub_takes_the_words_along(guide: Workspace) -> None:
    """H1, K5: in the workspace in the same transaction; of a memory of the account at once here."""
    port, theirs = learned(guide), guide.put("account", "The harbour master likes short notes", kind="semantic").id
    id, other = submitted(guide, port), guide.submit("tastes", memories=[theirs]).id
    plan = guide.scrub_plan("account", mode="keep_named")
    guide.scrub_execute("account", mode="keep_named", confirm=plan.digest)
    stored = {one.id: one for one in guide.ctx.local.submissions()}
    assert (stored[other].state, stored[other].change.text) == (SubmissionState.REMOVED, "")
    assert stored[id].change.text == "The port is 8443."
    plan = guide.scrub_plan("workspace", mode="keep_named")
    assert [line.count for line in plan.lines if line.kind == "submissions"] == [2]
    guide.scrub_execute("workspace", mode="keep_named", confirm=plan.digest)
    assert guide.submissions() == []


def test_another_workspace_loses_the_words_at_its_next_look(memory: Lukasa, guide: Workspace) -> None:
    """H1, K5: the account's memory went where another workspace's transaction cannot reach; its inbox clears them."""
    theirs = guide.put("account", "The harbour master likes short notes", kind="semantic").id
    guide.submit("tastes", memories=[theirs])
    elsewhere = memory.workspace("elsewhere")
    plan = elsewhere.scrub_plan("account", mode="keep_named")
    elsewhere.scrub_execute("account", mode="keep_named", confirm=plan.digest)
    guide.ctx.apply(guide.ctx.local, Enqueue(JobDraft("tidy", "tidy:now")))
    while run_next(guide.ctx) is not None:
        pass
    assert "short notes" not in str(guide.ctx.local.submissions())
    assert guide.inbox().submissions == ()


def test_a_purge_takes_the_words_along(world: Workspace) -> None:
    """H1, K5: what was said in a conversation that is purged is gone, also from what was submitted."""
    talk = world.start()
    here = world.at(conversation=talk.ref_code)
    note = here.put("conversation", "We talked about the green lantern of the quay").id
    id = here.submit("lanterns", memories=[note]).id
    world.purge_execute(talk.ref_code, confirm=world.purge_plan(talk.ref_code).digest)
    (left,) = world.submissions()
    assert (left.id, left.state, left.change.text, left.title) == (id, SubmissionState.REMOVED, "", "")
    assert world.inbox().submissions == ()
    with pytest.raises(InvalidTransition):
        world.approve(id)


def test_a_submission_is_there_for_its_tenant_and_the_owner_alone(memory: Lukasa) -> None:
    """X1, K5: another tenant is answered as if it never was; only a handle of the whole workspace accepts."""
    desk = memory.workspace("desk", preset="anchored")
    acme, evil = desk.at(org_id="acme", domain_id="ops"), desk.at(org_id="evil", domain_id="ops")
    fact = acme.put("persistent", "The limit of the north plant is 40,000 euro", kind="semantic").id
    id = acme.acting(agent="claude").submit("limits", memories=[fact]).id
    assert desk.get_submission(id).keys == {"org_id": "acme", "domain_id": "ops"}
    for stranger in (evil, evil.acting(agent="claude"), desk.acting(agent="claude")):
        assert stranger.submissions() == []
        with pytest.raises(NotFound):
            stranger.get_submission(id)
        with pytest.raises((NotFound, Refused)):
            stranger.approve(id)
    assert len(evil.inbox()) == 0
    assert [card.submission.id for card in acme.inbox().submissions] == [id]
    with pytest.raises(Refused, match="whole workspace"):
        acme.approve(id)
    assert desk.approve(id).outcome == "accepted"


def test_a_private_memory_of_an_agent_stays_between_it_and_the_owner(world: Workspace) -> None:
    """S4, K5: another agent sees neither the submission nor its words."""
    scribe = world.acting(agent="scribe")
    mine = scribe.put("workspace", "The cook hides the sugar", owner="scribe").id
    id = scribe.submit("kitchen", memories=[mine]).id
    assert world.acting(agent="claude").submissions() == []
    assert [s.id for s in scribe.submissions()] == [id]
    assert [card.submission.id for card in world.inbox().submissions] == [id]


# On the surfaces


def test_from_the_command_line(shell: Shell, tmp_path: Path) -> None:
    """K5: a file of the corpus, a submission by an agent, the inbox, a conflict, an edit, the history, the undo."""
    file = tmp_path / "deploys.md"
    file.write_text(GUIDE)
    shell.run("corpus", "add", str(file))
    memory, leave = (shell.json("put", text)["id"] for text in (PORT, "Ada is on leave in June"))
    (document,) = (d["id"] for d in shell.json("corpus", "list")["documents"])
    asked = ("--replaces", "The port is 80.", "--text", "The port is 8443.", "--derivable", "all")
    id = shell.json("--agent", "claude", "corpus", "submit", document, "--memory", memory, *asked)["id"]
    other = shell.json("corpus", "submit", document, "--memory", leave, "--under", "Production")["id"]
    shown = shell.run("review", "list")
    for said in ("[-80.-]{+8443.+}", "by claude", "retired with it", "- Ada is on leave in June", str(file)):
        assert said in shown
    assert shell.fails("--agent", "claude", "review", "approve", id, code=1)["code"] == "refused"
    assert f"retired     {memory}" in shell.run("review", "approve", id)
    moved = shell.json("review", "approve", other, code=1)["error"]
    assert (moved["code"], "{+8443.+}" in moved["diff"]) == ("document-moved", True)
    shell.run("review", "edit", other, "--onto", "2", "--text", "Ask Bo while Ada is on leave.", "--keep-all")
    assert "1 unchanged" in shell.run("corpus", "add", str(file))
    assert "Ask Bo while" in shell.run("corpus", "read", document)
    assert f"submission {other}" in shell.run("corpus", "history", document)
    assert "document deploys.md, version 2" in shell.run("get", memory).replace(document, "deploys.md")
    assert shell.json("corpus", "submissions", "--state", "accepted")["submissions"][0]["retired"] == [memory]
    assert "in place of" in shell.run("corpus", "submissions", id)
    for one in (other, id):
        shell.run("undo", one)
    assert shell.json("get", memory)["state"] == "active"
    assert "The port is 80." in shell.run("corpus", "read", document)
    shell.run("review", "reject", id, "--reason", "not so")
    assert "not so" in shell.run("corpus", "submissions", id)


def test_through_mcp_and_http(memory: Lukasa) -> None:
    """K5, U3: an agent submits with a tool and sees the decision; the owner decides over HTTP, and nobody else can."""
    world = memory.workspace("novel")
    world.save_document("deploys", GUIDE)
    port = learned(world)

    async def submits(client: Client) -> str:
        made = await called(
            client, "corpus_submit", document="deploys", memories=[port], under="Staging", derivable=[port]
        )
        assert (made["state"], made["origin"]["principal"]) == ("open", "claude")
        assert "no heading" in await refused(
            client, "corpus_submit", document="deploys", memories=[port], under="Stage"
        )
        return str(made["id"])

    async def looks(client: Client) -> list[dict[str, object]]:
        found: list[dict[str, object]] = (await called(client, "corpus_submissions", memory=port))["submissions"]
        return found

    given = lent(memory, "read", "write")
    id = session(lambda: beside(memory, given), submits)
    with running(memory) as house:
        owner, agent = house.owner(), house.granted("read", "write", "review", name="helper")
        path = f"/v1/workspaces/novel/review/{id}"
        assert agent.post(f"{path}/approve").status == 403
        listed = agent.get("/v1/workspaces/novel/review").json["submissions"]
        assert [(one["submission"]["id"], one["changes"]) for one in listed] == [(id, [])]
        (card,) = owner.get("/v1/workspaces/novel/review").json["submissions"]
        assert (card["retires"], [run["kind"] for run in card["changes"]]) == ([port], ["same", "added", "same"])
        world.save_document("deploys", GUIDE.replace("Ada", "Bo"))
        moved = owner.post(f"{path}/approve")
        assert (moved.status, moved.json["type"], "{+Bo.+}" in moved.json["diff"]) == (409, "document-moved", True)
        done = owner.post(f"{path}/edit", {"text": "It is 8443.", "onto": 2})
        assert (done.status, done.json["document"]["version"], done.json["submission"]["edited"]) == (200, 3, True)
        (seen,) = session(lambda: beside(memory, given), looks)
        assert (seen["state"], seen["accepted"], seen["retired"]) == ("accepted", 3, [port])
        assert owner.post(f"{path}/undo").json["document"] == "deploys"
    assert "8443" not in body(world)
    assert world.get(port).state is State.ACTIVE


def test_the_document_keeps_its_file_and_other_formats_are_refused(shell: Shell, tmp_path: Path) -> None:
    """K5: accepted text stays until the file changes, and then the file counts; a web page cannot be changed."""
    file, page = tmp_path / "deploys.md", tmp_path / "page.html"
    file.write_text(GUIDE)
    page.write_text("<html><body><h1>Quay</h1><p>The quay is open.</p></body></html>")
    shell.run("corpus", "add", str(file), str(page))
    found = [d["id"] for d in shell.json("corpus", "list")["documents"]]
    memory = shell.json("put", PORT)["id"]
    named = {id.rsplit("/", 1)[-1]: id for id in found}
    assert "not changed" in shell.fails("corpus", "submit", named["page.html"], "--memory", memory, code=1)["message"]
    document = named["deploys.md"]
    id = shell.json("corpus", "submit", document, "--memory", memory)["id"]
    assert "change it there too" in shell.run("review", "approve", id)
    shell.run("corpus", "add", str(file))
    assert "8443" in shell.run("corpus", "read", document)
    file.write_text(GUIDE + "\nNew.\n")
    shell.run("corpus", "add", str(file))
    assert "8443" not in shell.run("corpus", "read", document)


def test_how_is_a_word() -> None:
    """K5: the words of a change are those of the API."""
    assert [str(how) for how in How] == ["whole", "end", "under", "replace"]
