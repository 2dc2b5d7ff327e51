"""An import: read a file or folder of another program, say what it holds, and bring it into the right workspaces.

The whole of it is read once before anything is written, so that damage at its end is found at its beginning. Then each
conversation and each batch of memories is one transaction. An import that was interrupted goes on when it is run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import InvalidInput
from lukasa.model.past import PastSkipped, PastStatement
from lukasa.model.secrets import redact
from lukasa.model.text import storable
from lukasa.ports import Past, PastReader, PastTalk
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.past import statements
from lukasa.service.sessions import transcripts
from lukasa.service.workspace import Workspace

SAMPLES = 5
MOST_SKIPPED = 100
MOST_SAMPLE = 300
_NEW = "new"


class Places(Protocol):
    """The workspaces that an import goes into."""

    def named(self, folder: str) -> str:
        """The name of the workspace for a project's folder; without a folder, of the one for all else."""
        ...

    def found(self, name: str) -> Workspace | None:
        """The workspace of a name, if there is one."""
        ...

    def made(self, name: str) -> Workspace:
        """The workspace of a name, created if there is none."""
        ...


class Sample(Struct, frozen=True):
    """One thing of an import, as a preview shows it."""

    what: str
    text: str
    file: str
    item: str
    workspace: str
    said_at: datetime | None = None


@dataclass(slots=True)
class Brought:
    """What an import found, and what became of it; counts of a dry run say what would become of it.

    `memories` counts outcomes: known, stored, held, merged, replaced, discarded and refused; a dry run knows only those
    that are known and new. `secrets` are those that marks replace.
    """

    format: str
    path: str
    dry_run: bool
    memories: Counter[str] = field(default_factory=Counter)
    conversations: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    workspaces: Counter[str] = field(default_factory=Counter)
    earlier: int = 0
    secrets: int = 0
    skipped: list[PastSkipped] = field(default_factory=list)
    passed_over: int = 0
    samples: list[Sample] = field(default_factory=list)

    @property
    def found(self) -> int:
        return self.memories.total() + self.conversations.total()

    def _skip(self, one: PastSkipped) -> None:
        self.passed_over += 1
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append(one)


class Import(Struct, frozen=True):
    """An import that is ready to be planned and run. Only the owner's places take it."""

    reader: PastReader
    path: str
    format: str
    places: Places
    since: datetime | None = None
    tier: str | None = None
    mine: bool = False
    called: str = ""  # the name of a file that was sent, and has no path of its own

    def plan(self) -> Brought:
        """Read everything and write nothing: what there is, and how much of it is new."""
        return self._run(True, lambda: None)

    def run(self, watch: Callable[[], None] = lambda: None) -> Brought:
        """Bring what is new. `watch` is called after each thing."""
        return self._run(False, watch)

    def _run(self, dry: bool, watch: Callable[[], None]) -> Brought:
        done = Brought(self.format, self.called or self.path, dry)
        waiting: dict[str, list[PastStatement]] = {}
        seen: set[tuple[str, str]] = set()
        for one in self._within(done):
            if isinstance(one, PastSkipped):
                done._skip(one)
                continue
            name = self.places.named(one.folder if isinstance(one, PastStatement) else one.recording.folder)
            done.workspaces[name] += 1
            _sample(done, one, name)
            if isinstance(one, PastTalk):
                self._talk(done, one, name, dry)
                watch()
                continue
            if (mark := (name, one.identity)) in seen:
                done.memories[statements.KNOWN] += 1
                continue
            seen.add(mark)
            batch = waiting.setdefault(name, [])
            batch.append(one)
            if len(batch) >= statements.BATCH:
                self._memories(done, waiting.pop(name), name, dry)
            watch()
        for name, batch in waiting.items():
            self._memories(done, batch, name, dry)
        return done

    def _within(self, done: Brought) -> Iterator[Past]:
        """Yield what the file holds, from the day that was asked for on."""
        for one in self.reader.read(self.path, self.format, self.called):
            if isinstance(one, PastStatement) and not storable(one.text).strip():
                continue
            if self.since is not None and not isinstance(one, PastSkipped):
                last = one.said_at if isinstance(one, PastStatement) else _ended(one)
                if last is not None and last < self.since:
                    done.earlier += 1
                    continue
            yield one

    def _talk(self, done: Brought, one: PastTalk, name: str, dry: bool) -> None:
        workspace = self.places.found(name) if dry else self.places.made(name)
        recording = one.recording
        if all(piece.aside for piece in recording.pieces):
            done._skip(PastSkipped(one.file, transcripts.NOTHING_SAID))
            return
        if dry:
            kept, new = transcripts.news(workspace.ctx if workspace is not None else None, recording)
        else:
            assert workspace is not None
            origin = {"from": recording.format, "file": one.file}
            taken = transcripts.take_in_imported(workspace.ctx, recording, origin, self.tier or "")
            new, kept = taken.new, taken.transcript.kept - taken.new
        done.conversations[_NEW if new else statements.KNOWN] += 1
        done.messages[_NEW] += new
        done.messages[statements.KNOWN] += kept

    def _memories(self, done: Brought, batch: Sequence[PastStatement], name: str, dry: bool) -> None:
        workspace = self.places.found(name) if dry else self.places.made(name)
        if workspace is None:
            done.memories[_NEW] += len(batch)
            done.secrets += sum(redact(one.text)[1] for one in batch)
            return
        ctx = workspace.ctx.in_project("")  # the project of this moment is not that of the past
        tier = self.tier or ctx.default_tier()
        most = ctx.spec.reference_only.max_chars
        whole = [part for one in batch for part in statements.parts(_clean(one), most)]
        if dry:
            outcomes = [statements.KNOWN if one else _NEW for one in statements.known(ctx, tier, whole)]
        else:
            outcomes = statements.bring(ctx, tier, whole, mine=self.mine)
        done.memories.update(outcomes)
        fresh = (one for one, outcome in zip(whole, outcomes, strict=True) if outcome != statements.KNOWN)
        done.secrets += sum(redact(one.text)[1] for one in fresh)


class _Here:
    """One workspace, which takes all."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def named(self, folder: str) -> str:
        return self._workspace.name

    def found(self, name: str) -> Workspace:
        return self._workspace

    made = found


def into(ctx: CallContext, path: str, **how: Any) -> Import:
    """Return an import of a file or folder into the workspace of a context."""
    ctx.require_author("import what another program remembers")
    if ctx.past is None:
        raise InvalidInput("this memory cannot read files of other programs", fix="open memory with `Lukasa.open`")
    reader, called = ctx.past(), str(how.get("called") or "")
    since = how.pop("since", None)
    return Import(
        reader,
        path,
        how.pop("format", "") or reader.recognise(path, called),
        _Here(Workspace(ctx)),
        inputs.moment(since, "since") if since is not None else None,
        **how,
    )


def _clean(one: PastStatement) -> PastStatement:
    return replace(one, text=storable(one.text))


def _ended(talk: PastTalk) -> datetime | None:
    """Return when the last thing was said in a conversation."""
    times = [piece.at for piece in talk.recording.pieces if piece.at is not None]
    return max(times, default=talk.recording.started_at)


def _sample(done: Brought, one: PastStatement | PastTalk, name: str) -> None:
    what = "memory" if isinstance(one, PastStatement) else "conversation"
    if sum(sample.what == what for sample in done.samples) >= SAMPLES:
        return
    if isinstance(one, PastStatement):
        text, file, item, said_at = one.text, one.file, one.item, one.said_at
    else:
        recording = one.recording
        first = next((piece.text for piece in recording.pieces if piece.role == "user" and not piece.aside), "")
        text, file, item, said_at = recording.title or first, one.file, recording.session, recording.started_at
    said = redact(storable(text))[0]
    done.samples.append(Sample(what, said[:MOST_SAMPLE], file, item, name, said_at))
