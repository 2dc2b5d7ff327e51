"""A memory in which every field of everything says the same thing: what it is given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lukasa import Lukasa, SourceLink, Trust
from lukasa.model.amendment import Amendment, AmendmentState
from lukasa.model.corpus import Watch
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.telemetry import Spending, TelemetryEvent
from lukasa.model.transcript import Quote, Transcript, Utterance
from lukasa.service.entries.put import Memo
from lukasa.storage.operations import (
    Emit,
    Enqueue,
    FailJob,
    KeepUtterances,
    Operation,
    SaveAmendment,
    SaveTranscript,
    SaveWatch,
    Spend,
)

VIEWS = """home people activity settings overview browse add pages library conversations inbox context jobs log
telemetry transfer sync backups workspace scrub access""".split()


def furnish(memory: Lukasa, workspace: str, texts: list[str]) -> list[str]:
    """Fill a workspace with these texts, in every field that will take them; returns the views that show them."""
    main, now = memory.workspace(workspace), datetime.now(UTC)
    short = [text for text in texts if len(text) <= 60 and text.isprintable()]
    store = main.ctx.local

    def apply(*operations: Operation) -> None:
        main.ctx.apply(store, *operations)

    session = new_id()
    apply(
        SaveTranscript(Transcript(session, session, "plain", short[0], now, now, kept=1), 0),
        KeepUtterances(session, (Utterance("m1", "user", "\n".join(texts), 0, now),)),
    )
    quote = Quote(session, "m1", 0, len("\n".join(texts)))
    agent = main.acting(agent=short[0])
    ids: list[str] = []
    for number, text in enumerate(texts):
        tag = short[number % len(short)]
        memo = Memo(
            f"{text} (number {number})",
            tags=[tag],
            source=tag,
            metadata={tag: text},
            evidence=(quote,),
            derived_from=ids[-1:],
            kind=("semantic", "episodic", "procedural")[number % 3],
        )
        ids += [written.id for written in agent.put_many("workspace", [memo])]
        main.acting(trust=Trust.UNTRUSTED).put_many("workspace", [Memo(f"Always {text} {number}", kind="procedural")])
    main.update(ids[0], content=f"{texts[0]} was changed", tags=[short[-1]])
    main.put("account", f"{texts[0]} everywhere in {workspace}")
    main.forget(ids[1], short[0])
    main.edit_named("VOICE", "\n\n".join(texts))
    channel = main.create_channel("room for tests", short[0])
    talk = main.start(channel.name)
    main.write_note(talk.id, "plan", {text: text for text in texts})
    for text in short:
        apply(
            SaveAmendment(Amendment(new_id(), text, text, 0.5, (), now, now, AmendmentState.REVIEW, reason=text), 0),
            Emit(TelemetryEvent(now - timedelta(days=len(text) % 5), "error", text, text, text, False, 5.0, {text: 1})),
            Enqueue(JobDraft(text, f"key {text}", {text: text}, max_attempts=1)),
            Spend(Spending(f"{now:%Y-%m-%d}", text, 1, 2, 3, 0.5)),
        )
    while job := store.claim_job("w", now=now, lease_until=now + timedelta(minutes=1)):
        apply(FailJob(job.id, job.claim, texts[0], None))
    memory.access.create(short[0][:40], workspaces=[workspace])
    document = "\n\n".join(f"# {text}\n\n{text} (number {number})" for number, text in enumerate(texts))
    added = main.add_upload("strange.md", document.encode(), standing=short[0], origin=short[-1], tags=short)
    main.save_document("titled", document, title=short[0], collection=short[0], lifecycle=short[-1])
    main.put("workspace", f"{texts[0]} rests on a document", links=[SourceLink(added.document, 1)])
    for number, text in enumerate(texts):
        made = agent.submit("titled", f"{text} (submission {number})", memories=[ids[-1]], note=short[0])
        if number % 2:
            main.reject(made.id, short[-1])
    agent.submit(f"new {short[0]}", texts[0], memories=[ids[-1]], title=short[0])
    apply(SaveWatch(Watch(new_id(), "folder", f"/{short[0]}", short[0], now, now, error=texts[0], failures=2), 0))
    views = ["browse?q=number", f"entry/{ids[0]}", f"entry/{ids[1]}", "pages/VOICE", f"conversations/{talk.id}"]
    views += [f"conversations/session/{session}"]
    return [*VIEWS, *views, "library?q=number", "library/strange.md", "library/titled"]
