"""A store with rows in every table, as real use leaves them: for what must hold of each table."""

from __future__ import annotations

from msgspec.structs import replace

from lukasa.model.amendment import Amendment
from lukasa.model.answer import Answer
from lukasa.model.citation import Citation, CitationCheck, CitationVerdict, Cited
from lukasa.model.conversation import Note, WorkspaceInfo
from lukasa.model.corpus import DocumentSource, Passage, Watch
from lukasa.model.disclosure import Disclosure, Shown
from lukasa.model.entry import ClosedScope, Confirmation, Entry, Rivalry, Scope, SourceLink
from lukasa.model.grant import Capability, Grant, Reach, token_digest
from lukasa.model.ids import new_id
from lukasa.model.item import Item, ItemAddress
from lukasa.model.job import JobDraft
from lukasa.model.scrub import Extent, Mode, manifest_digest
from lukasa.model.submission import Change, How, Submission
from lukasa.model.sync import KeptRevision, Revision, Stage, SyncNote, revision_digest, thing_of
from lukasa.model.telemetry import Spending, TelemetryEvent
from lukasa.model.transcript import Transcript, Utterance
from lukasa.model.values import Origin, Relation, Trust
from lukasa.storage.operations import (
    CloseScope,
    DropEntry,
    Embedding,
    Emit,
    Enqueue,
    ItemIndex,
    ItemVector,
    JournalStep,
    KeepRevisions,
    KeepUtterances,
    LinkAction,
    Operation,
    SaveAmendment,
    SaveAnswer,
    SaveChannel,
    SaveChecks,
    SaveCitations,
    SaveConfirmation,
    SaveConversation,
    SaveDocument,
    SaveGrant,
    SaveItem,
    SaveNamed,
    SaveNote,
    SavePassageEmbedding,
    SaveRivalry,
    SaveSubmission,
    SaveTranscript,
    SaveWatch,
    SaveWorkspace,
    Scrub,
    Spend,
)
from lukasa.storage.port import Store
from tests.helpers.stores import (
    MODEL,
    NOW,
    change,
    channel,
    commit,
    conversation,
    document,
    entry,
    later,
    named,
    put,
    vector_of,
)


def tenant_scope(org: str) -> Scope:
    return Scope("persistent", (("workspace", "w1"), ("org_id", org)))


def fill(store: Store, word: str) -> dict[str, Entry]:
    """Put something of everything that a store keeps into it, in texts that hold the word. Return some entries."""
    old, new, gone = entry(f"{word} grinds rye"), entry(f"{word} grinds oats"), entry(f"{word} is gone")
    acme = entry(f"{word} of acme", scope=tenant_scope("acme"), tags=(word,))
    evil = entry(f"{word} of evil", scope=tenant_scope("evil"), tags=(word,))
    many = [entry(f"{word} lantern number {n}", scope=Scope("old", (("workspace", "w1"),))) for n in range(18)]
    talk_room = channel(word)
    talk = conversation(talk_room, ref_code=new_id()[-11:])
    page = document(f"doc {word}", f"Two of {word} review.")
    resting = replace(
        entry(f"{word} rests on others"), links=(SourceLink(page.id, 1, "l1", 1),), derived_from=(old.id,)
    )
    place = ItemAddress(("users", word), "prefs")
    session = Transcript(new_id(), f"claude-code:{word}", "claude-code", f"Fixing {word}", NOW, NOW)
    cited = Citation(new_id(), new.id, Cited.FILE, f"src/{word}.py", NOW, project=f"git:host/{word}")
    store.disclose(Disclosure(NOW, word, "mcp", "stdio", "", "", "memory_read", 9, (Shown(new.id, 1, 5),)))
    said = (Utterance("m1", "user", f"We deploy {word} with make", 0, NOW),)
    for group in _groups(
        [put(one, vector_of(one.content)) for one in (old, new, gone, acme, evil, *many)],
        [SaveDocument(page, 0), SaveDocument(replace(page, title=f"Newer {word}"), 1)],
        [
            SaveDocument(
                document(f"read {word}", f"Read by {word}."),
                0,
                (Passage("", 0, 0, f"Read by {word}.", (word,), tags=(word,)),),
                DocumentSource("", f"/{word}.md", "text/markdown", "d1", NOW, notes=(word,)),
            ),
            SavePassageEmbedding(f"read {word}", 1, 0, Embedding(MODEL, vector_of(word))),
            SaveWatch(Watch(new_id(), "folder", f"/{word}", word, NOW, later(60)), 0),
        ],
        [put(resting), change(old, content=f"{word} grinds wheat")],
        [SaveRivalry(Rivalry(new.id, resting.id, Relation.UPDATE, word, NOW))],
        [SaveCitations(new.id, (cited,))],
        [SaveChecks((CitationCheck(cited.id, new.id, CitationVerdict.GONE, NOW, why=word),))],
        [SaveConfirmation(Confirmation(new.id, NOW, "ada", "ada", "", "d1", ()))],
        [DropEntry(gone.id, 1, word), LinkAction(f"pay {word}", word, (new.id,))],
        [SaveNamed(named("VOICE", f"{word} speaks"), 0), SaveNamed(named("VOICE", f"{word} speaks up"), 1)],
        [SaveChannel(talk_room), SaveConversation(talk, None), SaveNote(Note(talk.id, "k", word, NOW, NOW))],
        [SaveWorkspace(WorkspaceInfo(new_id(), word, "lean", "[spec]", NOW, False), None)],
        [
            SaveItem(
                Item(place, {"theme": word}, NOW, NOW),
                (ItemVector("theme", MODEL, vector_of(word)),),
                ItemIndex((("theme", word),), "i"),
            )
        ],
        [Enqueue(JobDraft("observe", f"observe:{word}", {"word": word}))],
        [SaveTranscript(session, 0), KeepUtterances(session.id, said)],
        [SaveSubmission(_submission(word, new.id), 0)],
        [SaveAmendment(Amendment(new_id(), "facts", word, 0.5, ("s1",), NOW, NOW), 0)],
        [Emit(TelemetryEvent(NOW, "info", "test", "entries", "put", True))],
        [Spend(Spending("2026-03-01", "m", 1, 5, 2, 0.5)), SaveGrant(_grant(word), 0)],
        [
            KeepRevisions(
                (_revision(word), _revision(word, erased=True)), (SyncNote(f"local:{word}", {"state": [word]}),)
            )
        ],
        [CloseScope(ClosedScope(Scope("session", (("workspace", "w1"), ("session", word))), word, NOW))],
    ):
        commit(store, *group)
    job = store.claim_job("w1", now=later(1), lease_until=later(60))
    assert job is not None
    commit(store, JournalStep(job.id, job.claim, "asked", {"word": word}))
    store.touch([new.id], NOW)
    scrub = Extent("w1", Mode.FULL, Scope("old", (("workspace", "w1"),)))
    commit(store, Scrub(scrub, manifest_digest(scrub, store.holdings(scrub)), {"operator": "ada"}))
    commit(store, SaveAnswer(Answer(word, "r1", NOW, 200, word)))
    return {"old": old, "new": new, "acme": acme, "evil": evil}


def _revision(word: str, *, erased: bool = False) -> KeptRevision:
    body = {"name": [word], "text": {"body": word}, "rest": {}, "fields": {}}
    digest = revision_digest("w1", "page", thing_of(word), ("0" * 64,), body, NOW, "laptop", f"salt{erased}")
    made = Revision("w1", "page", thing_of(word), ("0" * 64,), None if erased else body, NOW, "laptop", "salt", digest)
    return KeptRevision(made, made.thing, about="c1", twin=word, stage=Stage.READY, member="ada", trust=Trust.AGENT)


def _submission(word: str, memory: str) -> Submission:
    change, origin = Change(How.END, word, word), Origin(word, "mcp", "stdio", Trust.AGENT)
    about = ("documents", 1, change, (memory,), (memory,), origin)
    return Submission(new_id(), f"doc {word}", word, *about, word, NOW, NOW)


def _groups(*groups: list[Operation]) -> tuple[list[Operation], ...]:
    return groups


def _grant(word: str) -> Grant:
    return Grant(
        id=new_id(),
        name=word,
        principal=word,
        agent=word,
        workspaces=("w1",),
        capabilities=(Capability.READ,),
        reach=Reach(),
        trust=Trust.AGENT,
        created_at=NOW,
        digest=token_digest(word),
        expires_at=later(60),
    )
