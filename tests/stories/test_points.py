"""Reports: every verb that changes something leaves one, in the same commit; a refused one leaves an error."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.entry import GateVerdict
from lukasa.model.errors import LukasaError, MirrorsCanonical, StoreError
from lukasa.model.grant import Capability
from lukasa.model.item import ItemAddress
from lukasa.model.telemetry import TelemetryEvent, TelemetryQuery
from lukasa.model.values import Gate, Trust
from lukasa.service.curation import reflect
from lukasa.service.entries import filed_entries, store_items
from lukasa.service.entries.put import Memo
from lukasa.service.jobs import queue
from lukasa.service.sessions import conversations, transcripts
from lukasa.surfaces.api.table import VERBS
from tests.helpers.making import FixedClock
from tests.helpers.sessions import claude
from tests.helpers.web import Site, site

DOUBT = GateVerdict(Gate.HOLD, 0.5, "hearsay")
FACT = "The villain of the novel is called Malachar"


def told(world: Workspace) -> list[TelemetryEvent]:
    """All reports, the oldest first."""
    stores = (world.ctx.local, world.ctx.account)
    return [point for store in stores for point in reversed(store.points(TelemetryQuery(), limit=1000))]


def last(world: Workspace) -> TelemetryEvent:
    return world.ctx.local.points(TelemetryQuery(), limit=1)[0]


class Case:
    """How to call a verb so that it does something, and so that it is refused."""

    def __init__(self, does: Callable[[Workspace, Path], Any], refused: Callable[[Workspace, Path], Any]) -> None:
        self.does, self.refused = does, refused


def rivals(world: Workspace) -> tuple[str, str]:
    """Two entries that give one thing two values."""
    return tuple(world.put("workspace", f"The mayor of Lorne is {name}").id for name in ("Ines", "Omar"))  # type: ignore[return-value]


def held(world: Workspace) -> str:
    return world.put_many("workspace", [Memo("Omar may leave in spring", gate=DOUBT)])[0].id


def ended(world: Workspace) -> str:
    talk = world.start()
    world.end(talk.id)
    world.archive(talk.id)
    return talk.id


def dead(world: Workspace) -> str:
    return queue.ask(world.ctx, "maintain").id


def cancelled(world: Workspace) -> str:
    return world.cancel_job(dead(world)).id


def fading(world: Workspace) -> str:
    return world.put("workspace", "Rowed over the lake in the rain", kind="episodic").id


def session(folder: Path) -> Path:
    return claude(folder / "session.jsonl", [("user", "We always deploy with make ship")])


def book(folder: Path) -> Path:
    shelf = folder / "shelf"
    shelf.mkdir(exist_ok=True)
    (shelf / "bible.md").write_text(f"# Bible\n\n{FACT}\n")
    return shelf / "bible.md"


PAGE = "<html><title>Gate</title><body><h1>Gate</h1><p>The lantern burns green at night.</p></body></html>"
FEED = '<rss version="2.0"><channel><title>News</title><item><guid>1</guid><title>One</title></item></channel></rss>'


def on_the_web(work: Callable[[Site], Any]) -> Any:
    """Do something with a server on loopback that may be asked."""
    with site() as web, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LUKASA_FETCH_ALLOW", web.allowed)
        return work(web)


def notes(folder: Path) -> Path:
    path = folder / "AGENTS.md"
    path.write_text("- Run the tests before each commit\n")
    return path


NOBODY = "01890000-0000-7000-8000-000000000000"
CASES: dict[str, Case] = {
    "put": Case(lambda w, _: w.put("workspace", FACT), lambda w, _: w.put("workspace", "")),
    "put_many": Case(lambda w, _: w.put_many("workspace", [FACT]), lambda w, _: w.put_many("workspace", "text")),
    "update": Case(
        lambda w, _: w.update(w.put("workspace", FACT).id, importance=0.9),
        lambda w, _: w.update(NOBODY, importance=0.9),
    ),
    "forget": Case(lambda w, _: w.forget(w.put("workspace", FACT).id), lambda w, _: w.forget(NOBODY)),
    "restore": Case(lambda w, _: w.restore(w.forget(w.put("workspace", FACT).id).id), lambda w, _: w.restore(NOBODY)),
    "accept": Case(lambda w, _: w.accept(held(w)), lambda w, _: w.accept(NOBODY)),
    "undo": Case(lambda w, _: w.undo(w.put("workspace", FACT).id), lambda w, _: w.undo(NOBODY)),
    "link_action": Case(
        lambda w, _: w.link_action("ship", [w.put("workspace", FACT).id]), lambda w, _: w.link_action("ship", [])
    ),
    "dispose": Case(lambda w, _: None, lambda w, _: w.dispose(fading(w), "burn")),
    "approve": Case(lambda w, _: w.approve(held(w)), lambda w, _: w.approve(NOBODY)),
    "reject": Case(lambda w, _: w.reject(held(w)), lambda w, _: w.reject(NOBODY)),
    "settle": Case(lambda w, _: w.settle(*rivals(w), "new"), lambda w, _: w.settle(NOBODY, NOBODY, "new")),
    "edit_named": Case(lambda w, _: w.edit_named("PLOT", "Act one"), lambda w, _: w.edit_named("plot!", "Act one")),
    "save_document": Case(lambda w, _: w.save_document("bible", FACT), lambda w, _: w.save_document("bible", "")),
    "remove_document": Case(
        lambda w, _: (w.save_document("bible", FACT), w.remove_document("bible")),
        lambda w, _: w.remove_document("bible"),
    ),
    "add_to_corpus": Case(
        lambda w, f: w.add_to_corpus(str(book(f))), lambda w, f: w.add_to_corpus(str(f / "absent.md"))
    ),
    "add_upload": Case(lambda w, _: w.add_upload("bible.md", FACT.encode()), lambda w, _: w.add_upload("a.md", b"")),
    "watch_folder": Case(
        lambda w, f: w.watch_folder(str(book(f).parent)), lambda w, f: w.watch_folder(str(f / "absent"))
    ),
    "unwatch": Case(
        lambda w, f: w.unwatch(w.watch_folder(str(book(f).parent))[0].id), lambda w, _: w.unwatch("nowhere")
    ),
    "cite": Case(
        lambda w, _: w.cite(w.put("workspace", FACT).id, "url:https://host.example/"),
        lambda w, _: w.cite(NOBODY, "url:https://host.example/"),
    ),
    "verify_citations": Case(
        lambda w, _: w.verify_citations(w.cite(w.put("workspace", FACT).id, "url:https://host.example/").entry.id),
        lambda w, _: w.verify_citations(NOBODY),
    ),
    "discover": Case(
        lambda w, _: on_the_web(lambda site: w.discover(site.put("/page.html", PAGE))),
        lambda w, _: w.discover("ftp://host.example/"),
    ),
    "follow_feed": Case(
        lambda w, _: on_the_web(lambda site: w.follow_feed(site.put("/feed.xml", FEED, "application/rss+xml"))),
        lambda w, _: w.follow_feed("ftp://host.example/"),
    ),
    "unfollow_feed": Case(
        lambda w, _: w.unfollow_feed(
            on_the_web(lambda site: w.follow_feed(site.put("/feed.xml", FEED, "application/rss+xml"))).id
        ),
        lambda w, _: w.unfollow_feed("nowhere"),
    ),
    "poll_feeds": Case(lambda w, _: w.poll_feeds(), lambda w, _: w.poll_feeds("nowhere")),
    "submit": Case(
        lambda w, f: (
            w.add_to_corpus(str(book(f))),
            w.submit("bible.md", "He is tall.", memories=[w.put("workspace", "Malachar is tall").id]),
        ),
        lambda w, _: w.submit("bible.md", "He is tall.", memories=[NOBODY]),
    ),
    "import_past": Case(lambda w, f: w.import_past(notes(f)), lambda w, f: w.import_past(f / "absent")),
    "create_channel": Case(lambda w, _: w.create_channel("plot"), lambda w, _: w.create_channel("")),
    "start": Case(lambda w, _: w.start(), lambda w, _: w.start("nowhere")),
    "idle": Case(lambda w, _: w.idle(w.start().id), lambda w, _: w.idle("nobody")),
    "archive": Case(lambda w, _: ended(w), lambda w, _: w.archive("nobody")),
    "end": Case(lambda w, _: w.end(w.start().id), lambda w, _: w.end("nobody")),
    "write_note": Case(
        lambda w, _: w.write_note(w.start().id, "key", 1), lambda w, _: w.write_note("nobody", "key", 1)
    ),
    "clear_notes": Case(lambda w, _: w.clear_notes(w.start().id), lambda w, _: w.clear_notes("nobody")),
    "retry_job": Case(lambda w, _: w.retry_job(cancelled(w)), lambda w, _: w.retry_job(NOBODY)),
    "cancel_job": Case(lambda w, _: cancelled(w), lambda w, _: w.cancel_job(NOBODY)),
    "scrub_execute": Case(
        lambda w, _: w.scrub_execute("workspace", confirm=w.scrub_plan("workspace").digest),
        lambda w, _: w.scrub_execute("workspace", confirm="yes"),
    ),
    "purge_execute": Case(
        lambda w, _: w.purge_execute(talk := w.start().id, confirm=w.purge_plan(talk).digest),
        lambda w, _: w.purge_execute("nobody", confirm="yes"),
    ),
    "erase": Case(
        lambda w, _: w.erase(entry=(id := w.put("workspace", FACT).id), confirm=w.erase_plan(entry=id).digest),
        lambda w, _: w.erase(entry=w.put("workspace", FACT).id, confirm="yes"),
    ),
    "scrub_files": Case(lambda w, _: w.scrub_files(), lambda w, _: w.acting(agent="helper").scrub_files()),
    "observe": Case(lambda w, f: w.observe(session(f)), lambda w, f: w.observe(f / "absent.jsonl")),
    "observe_by_rules": Case(
        lambda w, f: w.observe_by_rules(w.observe(session(f)).transcript.id), lambda w, _: w.observe_by_rules("nobody")
    ),
    "backfill": Case(lambda w, _: w.backfill(), lambda w, _: w.backfill(-1)),
    "rebuild": Case(lambda w, _: w.rebuild(), lambda w, _: None),
    "corroborate": Case(lambda w, _: w.corroborate(w.put("workspace", FACT).id), lambda w, _: w.corroborate(NOBODY)),
    "bookmark": Case(lambda w, _: w.bookmark("agreed"), lambda w, _: w.bookmark("two words\n")),
    "end_scope": Case(
        lambda w, _: w.at(channel=w.create_channel("plot").id).end_scope("channel"),
        lambda w, _: w.end_scope("nowhere"),
    ),
}
ELSEWHERE: dict[str, Case] = {
    "conversation join": Case(
        lambda w, _: conversations.join(w.ctx, NOBODY, "abc123"),
        lambda w, _: conversations.join(w.ctx, NOBODY[::-1], "abc124", "nowhere"),
    ),
    "note change": Case(
        lambda w, _: conversations.change_note(w.ctx, w.start().id, "key", lambda _: 1),
        lambda w, _: conversations.change_note(w.ctx, "nobody", "key", lambda _: 1),
    ),
    "file create": Case(
        lambda w, _: filed_entries.create(w.ctx, "workspace", "plot.md", FACT),
        lambda w, _: filed_entries.create(w.ctx, "workspace", "../plot.md", FACT),
    ),
    "file rewrite": Case(
        lambda w, _: (
            filed_entries.create(w.ctx, "workspace", "plot.md", FACT),
            filed_entries.rewrite(w.ctx, "workspace", "plot.md", str.upper),
        ),
        lambda w, _: filed_entries.rewrite(w.ctx, "workspace", "none.md", str.upper),
    ),
    "item write": Case(
        lambda w, _: store_items.write(w.ctx, [store_items.PutItem(ItemAddress(("a",), "k"), {"v": 1})], None),
        lambda w, _: store_items.write(w.ctx, [store_items.PutItem(ItemAddress(("a",), "k"), {"v": 1}, ttl=-1)], None),
    ),
    "item sweep": Case(lambda w, _: store_items.sweep(w.ctx), lambda w, _: None),
    "job ask": Case(lambda w, _: reflect.ask_for(w.ctx), lambda w, _: queue.ask(w.ctx, "sing")),
    "observe note": Case(
        lambda w, f: transcripts.note(w.ctx, "s1", str(session(f)), 1),
        lambda w, _: transcripts.note(w.ctx, "", "", 1),
    ),
    "curated rebuild": Case(
        lambda w, _: w.curated.rebuild("## Plot\n\n- 2026-11-15: The villain is called Malachar\n"),
        lambda w, _: w.acting(agent="helper").curated.rebuild("## Plot\n"),
    ),
    "curated undo": Case(
        lambda w, _: (w.curated.rebuild("## Plot\n\n- 2026-11-15: Malachar rules the north\n"), w.curated.undo()),
        lambda w, _: w.curated.undo(9),
    ),
    "log write": Case(
        lambda w, _: w.slog.write("ship", "make", "released"),
        lambda w, _: w.acting(trust=Trust.UNTRUSTED).slog.write("ship", "make", "released"),
    ),
}
READING = {
    *("home", "learned", "learned_in", "board", "names", "timeline", "table", "activity", "full_id", "gather"),
    *(
        "at",
        "acting",
        "limited",
        "read",
        "context",
        "why",
        "get",
        "entries",
        "standing",
        "stats",
        "reports",
        "dispositions",
    ),
    *(
        "history",
        "related",
        "ledger",
        "census",
        "survey",
        "evidence",
        "inbox",
        "named",
        "get_named",
        "named_history",
        "documents",
        "document_history",
        "search_corpus",
        "citations",
        "discoveries",
        "feeds",
        "disclose",
        "expect",
        "in_project",
        "shown",
        "token_use",
        "unused",
        "read_document",
        "about_document",
        "collections",
        "watches",
        "submissions",
        "get_submission",
        "imported_from",
    ),
    *("get_document", "channels", "conversations", "conversation", "read_note", "notes", "jobs", "job", "job_steps"),
    *("erase_plan", "erasures"),
    *("scrub_plan", "purge_plan", "transcripts", "transcript", "said", "search_transcripts", "events", "verify"),
    *("check", "outbound", "grounds", "grounds_of", "bookmarks"),
}


def test_every_verb_is_known_to_these_tests() -> None:
    """T1: a verb that is added to a workspace is one that looks, or it has its cases here."""
    public = {name for name, _ in inspect.getmembers(Workspace, inspect.isfunction) if not name.startswith("_")}
    assert public - READING == set(CASES)
    reported = {name for name in public if hasattr(getattr(Workspace, name), "__wrapped__")}
    assert reported == {*CASES, "read", "gather", "context", "search_corpus", "read_document"}


@pytest.mark.parametrize("memory", ["keyword"], indirect=True)
@pytest.mark.parametrize("name", [name for name in CASES if name != "dispose"])
def test_a_verb_leaves_a_report(world: Workspace, tmp_path: Path, name: str) -> None:
    """T1: level, source, component, action, success and duration, for every change of memory."""
    CASES[name].does(world, tmp_path)
    point = told(world)[-1]
    assert (point.level, point.success, point.source) == ("info", True, "library")
    assert point.component
    assert point.duration_ms >= 0


@pytest.mark.parametrize("memory", ["keyword"], indirect=True)
@pytest.mark.parametrize("name", [name for name in CASES if name != "rebuild"])
def test_a_refused_verb_leaves_an_error(world: Workspace, tmp_path: Path, name: str) -> None:
    """T1: also what was refused before any transaction; the report has the kind of error and not its words."""
    with pytest.raises(LukasaError) as refused:
        CASES[name].refused(world, tmp_path)
    point = last(world)
    assert (point.level, point.success) == ("error", False)
    assert point.metadata["error"] == refused.value.code


@pytest.mark.parametrize("memory", ["keyword"], indirect=True)
@pytest.mark.parametrize("name", list(ELSEWHERE))
def test_so_do_verbs_that_are_not_a_workspaces(world: Workspace, tmp_path: Path, name: str) -> None:
    """T1: what surfaces call directly reports in the same way."""
    ELSEWHERE[name].does(world, tmp_path)
    point = last(world)
    assert (f"{point.component} {point.action}", point.success) == (name, True)
    if name != "item sweep":
        with pytest.raises(LukasaError):
            ELSEWHERE[name].refused(world, tmp_path)
        assert last(world).level == "error"


def test_grants_report_to_the_account(memory: Lukasa) -> None:
    """T1: a grant is the account's, and so is its report."""
    memory.workspace("novel")
    memory.access.create("reader", workspaces=["novel"], can=[Capability.READ])
    memory.access.revoke("reader")
    with pytest.raises(LukasaError):
        memory.access.revoke("nobody")
    points = memory.account.points(TelemetryQuery(component="grant"))
    assert [(p.action, p.success) for p in reversed(points)] == [("create", True), ("revoke", True), ("revoke", False)]


def test_every_changing_verb_of_the_api_is_among_them() -> None:
    """T1: whatever a client can change in a workspace goes through a verb that reports; the account's events tell what
    became of whole workspaces."""
    families = {verb.name.split("_")[0] for verb in VERBS if verb.mutates} - {"workspace"}
    known = {
        "memory",
        "review",
        "named",
        "channel",
        "conversation",
        "note",
        "job",
        "grant",
        "scope",
        "corpus",
        "feed",
        "backup",
        "sync",
    }
    assert families <= known


@pytest.mark.parametrize("memory", ["keyword"], indirect=True)
def test_what_became_of_a_batch_is_counted(world: Workspace) -> None:
    """T1, T2: one report a call: stored, merged, held and discarded, what the gate said, and who kept it back."""
    world.put("workspace", FACT)
    agent = world.acting(trust=Trust.UNTRUSTED)
    agent.put_many("workspace", [FACT, Memo("ok", observed=True), "The inn of the novel is called The Drowned Rat"])
    about = last(world).metadata
    assert (about["merged"], about["discarded"], about["discarded_by_gate"], about["gate_discard"]) == (1, 1, 1, 1)
    assert about.get("stored", 0) + about.get("held", 0) == 1
    assert FACT not in str(told(world))


def test_a_report_is_committed_with_what_it_reports(world: Workspace) -> None:
    """T1, I1: a change that is not committed leaves no report of having been made."""
    world.edit_named("PLOT", "Act one")
    with pytest.raises(LukasaError):
        world.edit_named("PLOT", "Act two", expect=7)
    told_of = world.ctx.local.points(TelemetryQuery(component="page", action="edit"))
    assert [point.success for point in told_of] == [False, True]
    assert told_of[1].metadata == {"pages": 1}


def test_a_copy_of_a_canonical_body_is_refused_once(memory: Lukasa) -> None:
    """T1, R1: the refusal's event and its report are one commit, and it is counted once."""
    desk = memory.workspace("desk", preset="anchored")
    world = desk.at(org_id="o", domain_id="d")
    page = "The duchess of the northern marches keeps seven ravens in the tower and feeds them herself at dawn"
    desk.save_document("ravens", page)
    with pytest.raises(MirrorsCanonical):
        world.put("persistent", page)
    (point,) = world.ctx.local.points(TelemetryQuery(component="memory", action="put"))
    assert (point.level, point.metadata["error"]) == ("error", "mirrors-canonical")
    assert len(world.ctx.local.events(action="entry.refused")) == 1


def test_reads_report_without_writing(world: Workspace) -> None:
    """T1: how many were looked at and returned, by which signals; nothing is written for it by itself."""
    world.put("workspace", FACT)
    head = world.ctx.local.head()
    world.read("Who is the villain?")
    world.context("villain", budget=500)
    with pytest.raises(LukasaError):
        world.read("villain", profile="nonsense")
    refused, context, read = world.ctx.local.points(TelemetryQuery(), limit=3)
    assert (read.action, read.level, read.metadata["hits"], read.metadata["profile"]) == ("read", "debug", 1, "lean")
    assert "keyword" in read.metadata["signals"]
    assert read.metadata["candidates"] >= 1
    assert (context.action, context.metadata["budget"]) == ("context", 500)
    assert (refused.level, refused.metadata["error"]) == ("error", "invalid-query")
    assert world.ctx.local.head() == head


def test_a_process_that_only_reads_leaves_its_reports(tmp_path: Path) -> None:
    """T1, I4: a hook or a script reports too, whether or not it closes what it opened."""
    folder = tmp_path / "data"
    with Lukasa.open(folder, embedder="none") as memory:
        memory.workspace("novel").put("workspace", FACT)
    script = f"""
from lukasa import Lukasa
world = Lukasa.open({str(folder)!r}, embedder="none").workspace("novel")
for _ in range(3):
    world.read("villain")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    with Lukasa.open(folder, embedder="none") as memory:
        reads = memory.workspace("novel").ctx.local.points(TelemetryQuery(action="read"))
    assert len(reads) == 3


def test_stats_answer_how_many_and_how_long(world: Workspace, clock: FixedClock) -> None:
    """T2: how many were discarded this week, in every tier, and how long it took on average."""
    world.put_many("workspace", [Memo("ok", observed=True)])
    world.put_many("account", [Memo("no", observed=True)])
    found = world.stats("7d")
    assert found.outcomes == {"discarded": 2}
    (put,) = [tally for tally in found.work if (tally.component, tally.action) == ("memory", "put")]
    assert (put.count, put.failures, put.sums["discarded"]) == (2, 0, 2)


def test_a_closed_store_is_told_of_when_it_is_open_again(world: Workspace) -> None:
    """T1: a store that fails cannot take the report; it does not hide the error either."""
    world.ctx.local.close()
    with pytest.raises(StoreError):
        world.put("workspace", FACT)
