"""T09: who may do what, for every route there is, generated from the table; and a denied call changes nothing."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.routing import Mount, Route

from lukasa import Lukasa, Trust, Workspace
from lukasa.model.errors import Forbidden
from lukasa.model.grant import OWNERS_ALONE, Capability
from lukasa.model.ids import new_id, new_ref_code
from lukasa.model.job import JobDraft
from lukasa.model.transcript import Transcript, Utterance
from lukasa.storage.operations import CancelJob, Enqueue, KeepUtterances, SaveTranscript
from lukasa.surfaces.api.table import BY_NAME, VERBS
from lukasa.surfaces.api.verb import Verb, perform
from lukasa.surfaces.http.application import build
from tests.helpers.cli import support_spec
from tests.helpers.making import FixedClock
from tests.helpers.server import Answer, Client, Running, running
from tests.helpers.web import any_web

EVERYTHING = tuple(c for c in Capability if c not in OWNERS_ALONE)
_COUNT = count()
NOT_VERBS = {"health", "openapi", "event_stream", "page", "session_enter", "session_show", "session_leave", "assets"}
NOT_VERBS.add("mcp")  # whose tools test_mcp_tools goes through
NOT_VERBS |= {"live", "ready", "metrics"}  # which test_operating goes through
NOT_VERBS |= {"export", "export_workspace", "import", "import_past"}  # which test_portable_http goes through


@dataclass(frozen=True)
class Stage:
    """A server with something of everything in it, and one caller of each sort."""

    house: Running
    callers: dict[str, Client]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    clock = FixedClock()
    with Lukasa.open(tmp_path_factory.mktemp("matrix"), embedder="none", clock=clock) as memory:
        memory.workspace("novel")
        memory.workspace("other")
        memory.sync.init(str(tmp_path_factory.mktemp("matrix-sync") / "shared"), "five random words are enough")
        access = memory.access
        expired = access.create("expired", workspaces=["novel"], can=EVERYTHING, expires=timedelta(seconds=1))
        revoked = access.create("revoked", workspaces=["novel"], can=EVERYTHING)
        access.revoke("revoked")
        clock.time += timedelta(minutes=1)
        with running(memory) as house, any_web():
            callers = {
                "none": house.stranger(),
                "empty": Client(house.port, {"authorization": ""}),
                "malformed": house.holder("lks_nonsense"),
                "basic": Client(house.port, {"authorization": "Basic b3duZXI6"}),
                "expired": house.holder(expired.token),
                "revoked": house.holder(revoked.token),
                "elsewhere": house.granted(*EVERYTHING, workspaces=("other",), name="elsewhere"),
                "reader": house.granted("read", name="reader"),
                "writer": house.granted("read", "write", name="writer"),
                "everything": house.granted(*EVERYTHING, name="everything"),
                "owner": house.owner(),
            }
            yield Stage(house, callers)


class Things(dict[str, str]):
    """What a call works on, made when its example asks for it."""

    def __init__(self, memory: Lukasa, world: Workspace | None = None) -> None:
        super().__init__(fresh=f"no {next(_COUNT)}")
        self._memory = memory
        self._world = world if world is not None else memory.existing("novel")
        self._tier = "workspace" if world is None else "customer"

    def __getitem__(self, name: str) -> str:
        """A bookmark's name is given once, so each call gets another."""
        return f"mark-{next(_COUNT)}" if name == "mark" else super().__getitem__(name)

    def __missing__(self, name: str) -> str:
        self[name] = str(getattr(self, f"_{name}")())
        return self[name]

    def _entry(self) -> str:
        return self._world.put(self._tier, f"The word of day {self['fresh']} is lantern").id

    def _gone(self) -> str:
        return self._world.forget(self._world.put(self._tier, f"The tide {self['fresh']} was high").id).id

    def _talk(self) -> str:
        talk = self._world.start()
        self._world.write_note(talk.id, "plan", 1)
        return talk.ref_code

    def _digest(self) -> str:
        return self._world.purge_plan(self["talk"]).digest

    def _held(self) -> str:
        doubted = self._world.acting(trust=Trust.UNTRUSTED)
        return doubted.put(self._tier, f"Always light the lamp of {self['fresh']}", kind="procedural").id

    def _earlier(self) -> str:
        return self._world.put(self._tier, f"The mayor of {self['fresh']} is Ines").id

    def _later(self) -> str:
        assert self["earlier"]
        return self._world.put(self._tier, f"The mayor of {self['fresh']} is Omar").id

    def _accepted(self) -> str:
        made = self._world.submit(f"guide {self['fresh']}", memories=[self["entry"]])
        return self._memory.existing(self._world.name).approve(made.id).id

    def _session(self) -> str:
        moment = self._world.ctx.now
        keys = self._world.ctx.tenancy
        taken = Transcript(new_id(), self["fresh"], "plain", "A talk", moment, moment, kept=2, keys=keys)
        said = tuple(Utterance(f"m{n}", "user", f"Sentence {n}", n) for n in range(2))
        self._world.ctx.apply(self._world.ctx.local, SaveTranscript(taken, 0), KeepUtterances(taken.id, said))
        return taken.id

    def _queued(self) -> str:
        ctx = self._world.ctx
        ctx.apply(ctx.local, Enqueue(JobDraft("matrix", self["fresh"])))
        return self._memory.existing(self._world.name).job(self["fresh"]).id

    def _over(self) -> str:
        self._world.ctx.apply(self._world.ctx.local, CancelJob(self["queued"], "for the test"))
        return self["queued"]

    def _merge(self) -> str:
        return self._memory.merge_plan("novel", "other").digest

    def _doomed(self) -> str:
        return self._memory.workspace(f"doomed {self['fresh']}").name

    def _removal(self) -> str:
        return self._memory.removal_plan(self["doomed"]).digest

    def _backups(self) -> str:
        folder = self._memory.settings.data.parent / f"backups-{next(_COUNT)}"
        return self._memory.backup(folder).folder

    def _erasable(self) -> str:
        return f"nobody {self['fresh']}"

    def _erasure(self) -> str:
        return self._memory.workspace("novel").erase_plan(source=self["erasable"]).digest

    def _page(self) -> str:
        return f"http://{os.environ['LUKASA_FETCH_ALLOW']}/page-{next(_COUNT)}"

    def _feed(self) -> str:
        return f"http://{os.environ['LUKASA_FETCH_ALLOW']}/feed-{next(_COUNT)}"

    def _followed(self) -> str:
        return self._memory.existing("novel").follow_feed(self["feed"]).id

    def _grant(self) -> str:
        return self._memory.access.create(self["fresh"], workspaces=["novel"]).grant.id

    def _document(self) -> str:
        """A document that was sent by name; it has no spaces, since it goes into a query."""
        name = f"{self['fresh'].replace(' ', '-')}.md"
        self._memory.existing(self._world.name).add_upload(name, b"# Ropes\n\nThe rope is in the loft.\n")
        return name

    def _folder(self) -> str:
        folder = Path(self._memory.settings.data).with_name(f"{self['fresh']} folder")
        folder.mkdir(exist_ok=True)
        (folder / "oil.md").write_text(f"# Oil\n\nThe oil of {self['fresh']} is in the cellar.\n")
        return str(folder)

    def _watch(self) -> str:
        return self._memory.existing(self._world.name).watch_folder(self["folder"])[0].id


PAST = b64encode(b'{"type":"entity","name":"Ines","entityType":"p","observations":["keeps the light"]}').decode()
# What a good call of each verb says: the values of its path, and the rest. A verb that is not here fails the test.
EXAMPLES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "memory_read": ({}, {"query": "what is the word of the day?"}),
    "memory_gather": ({}, {"query": "what are all the words of the day?"}),
    "memory_why": ({"id": "{entry}"}, {"query": "what is the word of the day?"}),
    "memory_context": ({}, {"query": "the word"}),
    "memory_put": ({}, {"content": "The harbour of {fresh} freezes in winter"}),
    "memory_put_many": ({}, {"memos": [{"content": "The bridge of {fresh} is closed"}]}),
    "memory_list": ({}, {"limit": "2"}),
    "memory_get": ({"id": "{entry}"}, {}),
    "memory_update": ({"id": "{entry}"}, {"importance": 0.9}),
    "memory_forget": ({"id": "{entry}"}, {}),
    "memory_corroborate": ({"id": "{entry}"}, {}),
    "memory_cite": ({"id": "{entry}"}, {"cites": ["url:https://host.example/{mark}"]}),
    "memory_verify": ({}, {}),
    "memory_restore": ({"id": "{gone}"}, {}),
    "memory_undo": ({"id": "{gone}"}, {}),
    "memory_history": ({"id": "{entry}"}, {}),
    "memory_standing": ({"id": "{entry}"}, {}),
    "memory_ledger": ({"id": "{entry}"}, {}),
    "memory_evidence": ({"id": "{entry}"}, {}),
    "memory_scrub_plan": ({}, {"mode": "keep_named", "tier": "workspace"}),
    "memory_scrub_execute": ({}, {"mode": "purge_thread", "conversation": "{talk}", "confirm": "{digest}"}),
    "memory_erase_plan": ({}, {"source": "{erasable}"}),
    "memory_erase": ({}, {"source": "{erasable}", "confirm": "{erasure}"}),
    "memory_erasures": ({}, {}),
    "sync_status": ({}, {}),
    "sync_now": ({}, {}),
    "workspace_overview": ({}, {}),
    "workspace_home": ({}, {}),
    "workspace_board": ({}, {}),
    "workspace_timeline": ({}, {"at": "2026-05-01"}),
    "memory_shown": ({}, {"since": "24h"}),
    "workspace_tokens": ({}, {"since": "24h"}),
    "chart_draw": ({"name": "growth"}, {}),
    "markdown_render": ({}, {"text": "# Lantern"}),
    "corpus_search": ({}, {"query": "where is the rope?"}),
    "corpus_read": ({}, {"document": "{document}"}),
    "corpus_list": ({}, {}),
    "corpus_about": ({}, {"document": "{document}"}),
    "corpus_add": ({}, {"name": "{fresh}.md", "data": "IyBTYWlscwoKVGhlIHNhaWwgaXMgb24gdGhlIHJvb2YuCg=="}),
    "corpus_remove": ({}, {"document": "{document}"}),
    "corpus_watches": ({}, {}),
    "corpus_watch": ({}, {"folder": "{folder}"}),
    "corpus_unwatch": ({"id": "{watch}"}, {}),
    "named_list": ({}, {}),
    "named_get": ({"name": "VOICE"}, {}),
    "named_edit": ({"name": "VOICE"}, {"body": "Plainly."}),
    "named_history": ({"name": "VOICE"}, {}),
    "workspace_list": ({}, {}),
    "channel_list": ({}, {}),
    "channel_create": ({}, {"name": "channel {fresh}"}),
    "conversation_list": ({}, {}),
    "conversation_start": ({}, {}),
    "conversation_end": ({"id": "{talk}"}, {}),
    "conversation_archive": ({"id": "{talk}"}, {}),
    "scope_end": ({"name": "workspace_change"}, {}),
    "note_list": ({"id": "{talk}"}, {}),
    "note_read": ({"id": "{talk}", "key": "plan"}, {}),
    "note_write": ({"id": "{talk}", "key": "plan"}, {"value": {"step": 2}}),
    "note_clear": ({"id": "{talk}", "key": "plan"}, {}),
    "note_clear_all": ({"id": "{talk}"}, {}),
    "event_list": ({}, {"limit": "3"}),
    "bookmark_create": ({}, {"name": "{mark}"}),
    "bookmark_list": ({}, {}),
    "workspace_stats": ({}, {"since": "24h"}),
    "corpus_discover": ({}, {"url": "{page}", "context": "the page {fresh}"}),
    "corpus_discoveries": ({}, {"limit": "2"}),
    "feed_add": ({}, {"url": "{feed}"}),
    "feed_list": ({}, {}),
    "feed_remove": ({"id": "{followed}"}, {}),
    "feed_poll": ({}, {"id": "{followed}"}),
    "review_list": ({}, {}),
    "review_approve": ({"id": "{held}"}, {}),
    "review_edit": ({"id": "{held}"}, {"text": "Light the lamp of {fresh} at dusk"}),
    "review_reject": ({"id": "{held}"}, {}),
    "review_undo": ({"id": "{accepted}"}, {}),
    "review_settle": ({"id": "{later}"}, {"other": "{earlier}", "keep": "both"}),
    "corpus_submit": ({}, {"document": "guide {fresh}", "memories": ["{entry}"]}),
    "corpus_submissions": ({}, {"limit": "2"}),
    "transcript_list": ({}, {}),
    "transcript_get": ({"id": "{session}"}, {"limit": "1"}),
    "transcript_learned": ({"id": "{session}"}, {}),
    "memory_table": ({}, {"sort": "relevance", "limit": 5}),
    "name_list": ({}, {"limit": "5"}),
    "activity_list": ({}, {"limit": "5"}),
    "workspace_spec": ({}, {}),
    "settings_show": ({}, {}),
    "settings_try": ({}, {"what": "chat"}),
    "job_run": ({}, {"kind": "maintain"}),
    "job_list": ({}, {}),
    "job_get": ({"id": "{queued}"}, {}),
    "job_retry": ({"id": "{over}"}, {}),
    "job_cancel": ({"id": "{queued}"}, {}),
    "memory_import": ({}, {"name": "memory.jsonl", "data": PAST}),
    "grant_list": ({}, {}),
    "grant_create": ({}, {"name": "{fresh}", "workspaces": ["novel"]}),
    "grant_revoke": ({"id": "{grant}"}, {}),
    "workspace_create": ({}, {"name": "made {fresh}"}),
    "workspace_rename": ({}, {"name": "novel"}),
    "workspace_merge_plan": ({}, {"into": "other"}),
    "workspace_merge": ({}, {"into": "other", "confirm": "{merge}"}),
    "workspace_removal_plan": ({}, {}),
    "workspace_remove": ({}, {"confirm": "{removal}"}),
    "backup_list": ({}, {"folder": "{backups}"}),
    "backup_make": ({}, {"folder": "{backups}", "keep_last": 2}),
    "backup_check": ({}, {"folder": "{backups}"}),
}
# A grant takes part in no conversation of the owner's, so these are not there for it.
OWNERS_TALK = {"conversation_end", "conversation_archive"} | {name for name in BY_NAME if name.startswith("note_")}


def filled(value: Any, things: Things) -> Any:
    if isinstance(value, str):
        return value.format_map(things)
    if isinstance(value, list):
        return [filled(one, things) for one in value]
    return {key: filled(one, things) for key, one in value.items()} if isinstance(value, dict) else value


def call(
    verb: Verb, caller: Client, things: Things, workspace: str = "novel", scope: dict[str, str] | None = None
) -> Answer:
    places, said = EXAMPLES[verb.name]
    if workspace == "desk" and said.get("tier") == "workspace":
        said = {**said, "tier": "customer"}
    if workspace == "desk" and verb.name == "scope_end":
        places = {"name": "customer_change"}
    if verb.name == "workspace_remove":
        workspace = quote(things["doomed"])
    path = "/v1" + verb.path.format(workspace=workspace, **filled(places, things))
    headers = {"if_match": "*"} if verb.version_of is not None else {}
    if scope is not None:
        headers["lukasa_scope"] = "&".join(f"{key}={value}" for key, value in scope.items())
    if verb.method in ("GET", "DELETE"):
        query = "&".join(f"{key}={value}" for key, value in filled(said, things).items())
        return caller.ask(verb.method, f"{path}?{query}" if query else path, **headers)
    return caller.ask(verb.method, path, filled(said, things), **headers)


def expected(verb: Verb, caller: str) -> set[int]:
    """The table itself."""
    if caller in ("none", "empty", "malformed", "basic", "expired", "revoked"):
        return {401}
    if caller == "owner":
        return {verb.status}
    can = {"reader": {"read"}, "writer": {"read", "write"}}.get(caller, set(EVERYTHING))
    if can.isdisjoint(verb.capabilities) or verb.owner_only:
        return {403}
    if caller == "elsewhere" and verb.in_workspace:
        return {404}
    return {404} if verb.name in OWNERS_TALK else {verb.status}


def state_of(memory: Lukasa) -> list[tuple[str, int, int]]:
    """Size and time of every file that is ever written, read statistics too: the least write changes one of them."""
    files = [p for p in sorted(Path(memory.settings.data).rglob("*")) if p.name.endswith((".db", ".db-wal"))]
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def ready(verb: Verb, memory: Lukasa) -> Things:
    """Things for a call of this verb, made before anything is compared."""
    things = Things(memory)
    filled(list(EXAMPLES[verb.name]), things)
    return things


CALLERS = [
    "none",
    "empty",
    "malformed",
    "basic",
    "expired",
    "revoked",
    "elsewhere",
    "reader",
    "writer",
    "everything",
    "owner",
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_route_for_every_caller(stage: Stage, verb: Verb) -> None:
    """T09, X4, U4: the expected answer and no other; a call that is refused touches no file."""
    things = ready(verb, stage.house.memory)
    for name in CALLERS:
        before = state_of(stage.house.memory)
        answer = call(verb, stage.callers[name], things)
        assert answer.status in expected(verb, name), (verb.name, name, answer.status, answer.body)
        if answer.status >= 400:
            assert state_of(stage.house.memory) == before, (verb.name, name)
            assert answer.headers["content-type"] == "application/problem+json"
            assert set(answer.json) >= {"type", "title", "status", "detail", "fix"}
        elif verb.mutates:
            things = ready(verb, stage.house.memory)


def test_what_is_no_verb_asks_for_a_pass_too(stage: Stage) -> None:
    """T09: the stream of events, a route beside the table, is the owner's alone."""
    path = "/v1/workspaces/novel/events/stream"
    for name in ("none", "malformed", "expired", "revoked"):
        assert stage.callers[name].get(path).status == 401
    assert stage.callers["everything"].get(path).status == 403


def test_anybody_reads_the_document(stage: Stage) -> None:
    """U4: a client is made from the document before anybody has a token; it says nothing about this memory."""
    told = {name: stage.callers[name].get("/openapi.json") for name in ("none", "revoked", "owner")}
    assert {answer.status for answer in told.values()} == {200}
    assert len({answer.body for answer in told.values()}) == 1


def test_every_route_is_known(stage: Stage) -> None:
    """T09: a route that is neither a verb's nor on the short list is one that nobody decided about."""
    app: Any = build(stage.house.server.parts)
    while hasattr(app, "_app"):
        app = app._app
    names = {route.name for route in app.routes if isinstance(route, Route | Mount)}
    assert names == {verb.name for verb in VERBS} | NOT_VERBS


def test_every_verb_has_what_it_needs() -> None:
    """T09, X4: a capability, a name that is used once, a path that is used once, and an example here."""
    assert all(isinstance(one, Capability) for verb in VERBS for one in verb.capabilities)
    assert len(BY_NAME) == len(VERBS) == len({(verb.method, verb.path) for verb in VERBS})
    assert set(EXAMPLES) == set(BY_NAME)
    assert all(verb.mutates <= (verb.method != "GET") for verb in VERBS)
    given = {
        name: getattr(VERBS[0], name) for name in ("name", "description", "method", "path", "input", "output", "run")
    }
    with pytest.raises(TypeError, match="capability"):
        Verb(**given)


@pytest.mark.parametrize("verb", [v for v in VERBS if Capability.READ not in v.capabilities], ids=lambda v: v.name)
def test_a_verb_is_refused_whichever_surface_asks(stage: Stage, verb: Verb) -> None:
    """T09, H3: the check is in the one way to perform a verb, so that no surface can leave it out."""
    access = stage.house.memory.access
    token = stage.callers["reader"].headers["authorization"].removeprefix("Bearer ")
    given = access.admit(token, surface="mcp", transport="stdio")
    with pytest.raises(Forbidden):
        perform(verb, access, given, "novel", verb.input.model_construct())


def test_capabilities_are_apart(stage: Stage) -> None:
    """H3, X4: each way of scrubbing is a capability of its own, and none of them comes with another."""
    scrubs = {c for c in Capability if c.startswith("scrub_")}
    assert len(scrubs) == 4
    for one in Capability:
        if one not in OWNERS_ALONE:
            grant = stage.house.memory.access.create(
                "single", workspaces=["novel"], can=[one], agent=f"only-{one}"
            ).grant
            assert grant.capabilities == (one,)


def test_no_answer_has_a_secret(stage: Stage) -> None:
    """T09, T61: neither a token nor its digest is in what anybody is told of grants."""
    told = stage.callers["owner"].get("/v1/grants")
    assert told.status == 200
    for grant in stage.house.memory.access.grants():
        assert grant.digest.encode() not in told.body
    assert b"lks_" not in told.body


# Tenants of one workspace


ACME, EVIL = {"tenant_id": "acme", "customer_id": "7"}, {"tenant_id": "evil", "customer_id": "7"}
# Verbs about the whole workspace, and those that write what every tenant reads: no grant of a tenant has them.
WHOLE = {
    "channel_create",
    "bookmark_create",
    "bookmark_list",
    "workspace_stats",
    "memory_shown",
    "workspace_tokens",
    "corpus_unwatch",
    "event_list",
    "feed_add",
    "feed_list",
    "feed_remove",
    "feed_poll",
    "corpus_discover",
    "job_run",
    "job_list",
    "job_get",
    "job_retry",
    "job_cancel",
    "review_undo",
}
# Verbs that take the id of something that one tenant alone has.
OF_A_TENANT = sorted(
    verb.name
    for verb in VERBS
    if verb.in_workspace and EXAMPLES[verb.name][0].keys() & {"id"} and verb.name not in WHOLE
)


@pytest.fixture(scope="module")
def tenants(stage: Stage) -> dict[str, Client]:
    """Grants with every capability: of two tenants, and of none."""
    stage.house.memory.workspace("desk", spec=support_spec())
    made = {"acme": ACME, "evil": EVIL, "nobody": {}}
    return {
        name: stage.house.granted(*EVERYTHING, workspaces=("desk",), name=name, scope=scope)
        for name, scope in made.items()
    }


class Unknown(Things):
    """Ids and keys that never were."""

    def __missing__(self, name: str) -> str:
        self[name] = new_ref_code() if name == "talk" else new_id()
        return self[name]


@pytest.mark.parametrize("verb", [BY_NAME[name] for name in OF_A_TENANT], ids=lambda verb: verb.name)
def test_a_tenants_things_are_not_there_for_others(stage: Stage, tenants: dict[str, Client], verb: Verb) -> None:
    """T09, S4: an id of another tenant is answered like one that never was, and nothing changes."""
    memory = stage.house.memory
    mine = memory.existing("desk").at(**ACME)
    things = Things(memory, mine)
    filled(list(EXAMPLES[verb.name]), things)
    unknown = Unknown(memory, mine)
    filled(list(EXAMPLES[verb.name]), unknown)
    for name, scope in (("evil", None), ("nobody", None), ("evil", EVIL)):
        before = state_of(memory)
        theirs = call(verb, tenants[name], things, "desk", scope)
        missing = call(verb, tenants[name], unknown, "desk", scope)
        assert theirs.status == missing.status, (name, theirs.body, missing.body)
        assert theirs.status in (403, 404), (name, theirs.body)
        assert words(theirs, things) == words(missing, unknown)
        assert state_of(memory) == before
    owner = call(verb, stage.callers["owner"], things, "desk", EVIL)
    nowhere = call(verb, stage.callers["owner"], unknown, "desk", EVIL)
    assert (owner.status, words(owner, things)) == (nowhere.status, words(nowhere, unknown))
    assert owner.status == 404, owner.body
    assert call(verb, stage.callers["owner"], things, "desk", ACME).status == verb.status


def words(answer: Answer, things: Things) -> str:
    """What an answer says, without the ids that were asked for."""
    said = f"{answer.json['detail']} {answer.json['fix']}"
    for value in sorted(things.values(), key=len, reverse=True):
        said = said.replace(value, "…")
    return said


@pytest.mark.parametrize("verb", [v for v in VERBS if v.in_workspace], ids=lambda verb: verb.name)
def test_a_grant_of_a_tenant_keeps_to_it(stage: Stage, tenants: dict[str, Client], verb: Verb) -> None:
    """T09, S4: each verb works for a tenant's own, or is refused as the whole workspace's; no scope widens it."""
    memory = stage.house.memory
    mine = memory.existing("desk").at(**ACME)
    things = Things(memory, mine)
    filled(list(EXAMPLES[verb.name]), things)
    wider = call(verb, tenants["acme"], things, "desk", EVIL)
    assert wider.status == (403 if verb.owner_only else 404), wider.body
    answer = call(verb, tenants["acme"], things, "desk")
    if verb.owner_only or verb.name in WHOLE:
        assert answer.status == 403, answer.body
    else:
        assert answer.status == (404 if verb.name in OWNERS_TALK else verb.status), answer.body
    assert b"evil" not in answer.body
