"""Transcripts: keep recorded sessions verbatim and clean, make them searchable at once, queue them for observation.

A session is known by its id, or without one by its beginning. Keeping it again adds the new messages, and only those
are observed; without new messages nothing is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lukasa import observe
from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.events import EventDraft
from lukasa.model.ids import new_id
from lukasa.model.job import JobDraft
from lukasa.model.past import IMPORTED
from lukasa.model.telemetry import Level, TelemetryEvent
from lukasa.model.text import terms
from lukasa.model.transcript import Progress, Transcript, Utterance
from lukasa.ports import Piece, Recording
from lukasa.service import inputs
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.instrument import verb
from lukasa.storage.operations import Emit, Enqueue, KeepUtterances, Operation, Record, SaveTranscript
from lukasa.storage.port import FoundUtterance
from lukasa.write.transforms import TRANSFORMS

if TYPE_CHECKING:
    from lukasa.observe.noise import Cleaned
    from lukasa.service.jobs.task import Task

KIND = "observe"
IMPORTED_TALK = "transcript.imported"  # the event that says which file a transcript comes from
NOTHING_SAID = "nothing was said in it"
MOST_PATH = 4096
EVERY = 1_000_000


class Taken(Struct, frozen=True):
    """The result of keeping a file: how many messages are new, what was removed from them, and the next job."""

    transcript: Transcript
    new: int
    stripped: Mapping[str, int]
    broken: int
    job: str = ""


# Keeping


def take_in(
    ctx: CallContext, path: str, *, into: str | None = None, tier: str | None = None, task: Task | None = None
) -> Taken:
    """Keep the messages of a session file, and queue a job that observes them, in one transaction.

    `into` is the id of its transcript, if it is known. `tier` is where facts go that name no other place. With a task,
    the step is journaled in the same transaction.
    """
    if tier is not None:
        ctx.scope(tier)
    if ctx.transcripts is None:
        raise InvalidInput("this memory cannot read session files", fix="open memory with `Lukasa.open`")
    recording = ctx.transcripts().read(path)
    return retry_on_conflict(lambda: _take_in(ctx, recording, into, tier or "", task))


def take_in_imported(ctx: CallContext, recording: Recording, origin: Mapping[str, str], tier: str = "") -> Taken:
    """Keep the messages of a session that another program recorded, and queue a job that observes them.

    `origin` says which file it comes from. What is observed in it counts as imported.
    """
    ctx.require_author("import a conversation")
    return retry_on_conflict(lambda: _take_in(ctx, recording, None, tier, None, origin))


def news(ctx: CallContext | None, recording: Recording) -> tuple[int, int]:
    """Return how many messages of a session are kept, and how many keeping it again would add.

    Without a context, for a workspace that does not exist yet.
    """
    if ctx is None:
        return 0, len(observe.noise.clean(recording.pieces, TRANSFORMS["redact_secrets"]).utterances)
    known = find(ctx, recording)
    return known.kept if known is not None else 0, len(_news(ctx, recording, known).utterances)


def imported_from(ctx: CallContext, transcript: str) -> dict[str, str]:
    """Return the format and the file that a transcript was imported from; empty if it was not."""
    found = ctx.local.events(subject=transcript, action=IMPORTED_TALK, limit=1)
    return {str(key): str(value) for key, value in found[0].detail.items()} if found else {}


def _take_in(
    ctx: CallContext,
    recording: Recording,
    into: str | None,
    tier: str,
    task: Task | None,
    origin: Mapping[str, str] | None = None,
) -> Taken:
    known = ctx.local.transcript(into) if into is not None else find(ctx, recording)
    cleaned = _news(ctx, recording, known)
    now, new = ctx.now, len(cleaned.utterances)
    broken = len(recording.broken)
    settled = known is not None and (known.kept > 0 or known.progress is Progress.OBSERVED)
    if known is not None and not new and settled:
        taken = Taken(known, 0, {}, broken)
        if task is not None:
            task.commit("taken", _counts(taken))
        return taken
    before = known or Transcript(
        new_id(), _marked(ctx, _key(recording)), recording.format, recording.title, now, now, keys=ctx.tenancy
    )
    after = replace(
        before,
        title=before.title or recording.title,
        started_at=before.started_at or recording.started_at,
        updated_at=now,
        kept=before.kept + new,
        progress=Progress.PENDING if new else Progress.OBSERVED,
        detail="" if new else NOTHING_SAID,
    )
    job = _job(ctx, after, before.kept, tier=tier, folder=recording.folder, origin=origin) if new else None
    taken = Taken(after, new, cleaned.stripped, broken, job.key if job else "")
    operations: list[Operation] = [SaveTranscript(after, known.version if known else 0)]
    if job is not None:
        operations += [KeepUtterances(after.id, cleaned.utterances), Enqueue(job)]
    operations.append(_told(ctx, taken))
    if origin is not None and known is None:
        operations.append(Record(EventDraft(IMPORTED_TALK, after.id, origin)))
    if task is None:
        ctx.apply(ctx.local, *operations)
    else:
        task.commit("taken", _counts(taken), *operations)
    return taken


def find(ctx: CallContext, recording: Recording) -> Transcript | None:
    """Return the transcript of a session that was kept before."""
    if recording.session:
        return ctx.local.transcript(_marked(ctx, f"{recording.format}:{recording.session}"))
    # Each id depends on all messages before it, so a known id means a known beginning.
    for piece in reversed(_spoken(recording)):
        found = ctx.local.transcript(_marked(ctx, f"{recording.format}:{piece.id}"))
        if found is not None and _continues(ctx, found, recording):
            return found
    return None


def _marked(ctx: CallContext, key: str) -> str:
    """Return the key of a session for the tenant that is bound: each keeps its own transcript of it."""
    bound = "\n".join(f"{name}={value}" for name, value in ctx.tenancy.items())
    return f"{key}@{hashlib.sha256(bound.encode()).hexdigest()[:16]}" if bound else key


def _continues(ctx: CallContext, found: Transcript, recording: Recording) -> bool:
    last = ctx.local.utterances(found.id, start=found.kept - 1) if found.kept else []
    return not last or any(piece.id == last[-1].id for piece in recording.pieces)


def _key(recording: Recording) -> str:
    spoken = _spoken(recording)
    if not recording.session and not spoken:
        raise InvalidInput("the session file holds no message", fix="give a file with messages")
    return f"{recording.format}:{recording.session or spoken[-1].id}"


def _spoken(recording: Recording) -> list[Piece]:
    return [piece for piece in recording.pieces if not piece.aside]


def _news(ctx: CallContext, recording: Recording, known: Transcript | None) -> Cleaned:
    """Return the new messages of a recording, cleaned."""
    redact = TRANSFORMS["redact_secrets"]
    if known is None:
        return observe.noise.clean(recording.pieces, redact)
    ids = {u.id: u.place for u in ctx.local.utterances(known.id)}
    unseen: Sequence[Piece] = recording.pieces
    last = max((n for n, piece in enumerate(unseen) if ids.get(piece.id) == known.kept - 1), default=-1)
    unseen = [piece for piece in unseen[last + 1 :] if piece.id not in ids]
    return observe.noise.clean(unseen, redact, place=known.kept)


def _job(
    ctx: CallContext,
    transcript: Transcript,
    start: int,
    *,
    rules: bool = False,
    tier: str = "",
    folder: str = "",
    origin: Mapping[str, str] | None = None,
) -> JobDraft:
    """Return the job for the remaining messages. Its key names them, so they are observed once."""
    payload = {"transcript": transcript.id, "start": start, "end": transcript.kept, **_where(ctx, tier)}
    payload |= {"folder": folder} if folder else {}
    payload |= {IMPORTED: dict(origin)} if origin else {}
    key = f"{KIND}:{transcript.id}:{start}-{transcript.kept}"
    return JobDraft(KIND, f"{key}:rules", {**payload, "rules": True}) if rules else JobDraft(KIND, key, payload)


def _where(ctx: CallContext, tier: str) -> dict[str, Any]:
    """Return where facts go: the scope keys and agent of whoever asks, which a worker has not, and the tier named."""
    told = {"tier": tier, "agent": ctx.agent}
    return {"keys": dict(ctx.keys), **{name: value for name, value in told.items() if value}}


def _counts(taken: Taken) -> dict[str, int | str]:
    return {"transcript": taken.transcript.id, "messages": taken.new, "broken": taken.broken}


def _told(ctx: CallContext, taken: Taken) -> Emit:
    stripped = {f"stripped_{name.replace('-', '_')}": count for name, count in taken.stripped.items()}
    about = {**_counts(taken), "format": taken.transcript.format, **stripped}
    level: Level = "warn" if taken.broken else "info"
    return Emit(TelemetryEvent(ctx.now, level, ctx.origin.surface, KIND, "transcript.taken", True, 0.0, about))


# Requests


@verb("observe", "note")
def note(ctx: CallContext, session: str, path: str, size: int, *, format: str = "claude-code") -> Transcript:
    """Note that a session is to be observed, without reading its file; the job reads it.

    If the file is gone by then, the transcript is marked as failed with that reason.
    """
    return retry_on_conflict(lambda: _note(ctx, inputs.one_line(session, "session"), path[:MOST_PATH], size, format))


def _note(ctx: CallContext, session: str, path: str, size: int, format: str) -> Transcript:
    key, now = _marked(ctx, f"{format}:{session}"), ctx.now
    known = ctx.local.transcript(key)
    found = known or Transcript(new_id(), key, format, "", now, now, detail="waits to be read", keys=ctx.tenancy)
    payload = {"transcript": found.id, "path": path, "size": size, **_where(ctx, "")}
    draft = JobDraft(KIND, f"{KIND}:{found.id}:file-{size}", payload)
    if known is None:
        ctx.apply(ctx.local, SaveTranscript(found, 0), Enqueue(draft))
    elif ctx.local.job(draft.key) is None:
        ctx.apply(ctx.local, Enqueue(draft))
    return found


def again(ctx: CallContext, id_or_key: str) -> Transcript:
    """Queue the unobserved part of a transcript to be observed by rules, without a model."""
    found = transcript(ctx, id_or_key)
    if found.observed >= found.kept:
        return found
    ctx.apply(ctx.local, Enqueue(_job(ctx, found, found.observed, rules=True)))
    return found


# Reading


def transcripts(
    ctx: CallContext, *, progress: Progress | str | None = None, limit: int = 100, after: str | None = None
) -> list[Transcript]:
    """Return the kept sessions, newest first."""
    ctx.require_agent("read transcripts")
    wanted = None if progress is None else inputs.choice(progress, Progress, "progress")
    most, found = inputs.limit(limit, 10_000), list[Transcript]()
    while True:
        page = ctx.local.transcripts(progress=wanted, limit=most, after=after)
        found += [one for one in page if ctx.owns(one.keys)]
        if len(page) < most or len(found) >= most:
            return found[:most]
        after = page[-1].id


def transcript(ctx: CallContext, id_or_key: str) -> Transcript:
    """Return one kept session."""
    ctx.require_agent("read transcripts")
    wanted = inputs.label(id_or_key, "transcript")
    found = known(ctx, wanted)
    if found is None:
        raise NotFound(
            f"no transcript {wanted[:60]!r} in workspace {ctx.info.name!r}", fix="`lukasa transcripts list` shows them"
        )
    return found


def known(ctx: CallContext, id_or_key: str) -> Transcript | None:
    """Return a kept session of this handle's scope by id or key, if there is one."""
    found = (ctx.local.transcript(key) for key in dict.fromkeys((id_or_key, _marked(ctx, id_or_key))))
    return next((one for one in found if one is not None and ctx.owns(one.keys)), None)


def said(ctx: CallContext, id_or_key: str, *, start: int = 0, limit: int | None = None) -> list[Utterance]:
    """Return the messages of a transcript, in order."""
    return ctx.local.utterances(transcript(ctx, id_or_key).id, start=start, limit=limit)


def search(ctx: CallContext, words: str, limit: int = 20) -> list[FoundUtterance]:
    """Return messages with any of these words, the best match first, also of sessions not yet observed."""
    ctx.require_agent("search transcripts")
    asked = tuple(dict.fromkeys(terms(inputs.query(words))))
    most = inputs.limit(limit, 1000)
    if not asked:
        return []
    if not ctx.spec.custom_keys:
        return ctx.local.find_utterances(asked, most)
    found = ctx.local.find_utterances(asked, EVERY)
    owned = {id: ctx.owns(one.keys) for id in {u.transcript for u in found} if (one := ctx.local.transcript(id))}
    kept = (u for u in found if owned.get(u.transcript))
    mine = sorted(kept, key=lambda u: (u.transcript, u.utterance.place), reverse=True)
    # The store weighs words by all transcripts, which would tell of others: here more words are better, then newer.
    return sorted(mine, key=lambda u: -len({*asked}.intersection(terms(u.utterance.text))))[:most]
