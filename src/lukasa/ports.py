"""Ports: the protocols of everything outside that the engine uses, but for its store: clock, models, files, spans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field

from lukasa.model.conversation import Conversation
from lukasa.model.corpus import FoundFile, FoundFiles, ParsedDocument, Passage
from lukasa.model.discovery import Feed, FeedLink, Repository
from lukasa.model.erasure import Words
from lukasa.model.errors import ChatRefused, InvalidInput
from lukasa.model.past import PastSkipped, PastStatement
from lukasa.model.source_text import SourceText
from lukasa.model.transcript import Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lukasa.model.machines import Card, Header, Opened, Rekey, Removal, Secrets, SharedKey, SyncState
    from lukasa.model.machines import Note as SyncNote
    from lukasa.model.sync import Bundle


class Clock(Protocol):
    def now(self) -> datetime: ...


class SystemClock:
    """The machine's wall clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


Vector: TypeAlias = "NDArray[np.float32]"


class EmbeddingModel(Struct, frozen=True, eq=False):
    """Identity of a model. Vectors of two different identities are never compared.

    `floor` is the cosine that unrelated texts reach under this model: below it, nearness says nothing.
    """

    name: str
    dimensions: int
    digest: str = ""
    floor: float = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmbeddingModel) and self._identity == other._identity

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, int, str]:
        return self.name, self.dimensions, self.digest

    @property
    def key(self) -> str:
        return f"{self.name}/{self.dimensions}/{self.digest[:16]}"


class Embedder(Protocol):
    """Turns text into L2-normalised float32 vectors; a dot product is then the cosine."""

    @property
    def model(self) -> EmbeddingModel: ...

    def embed_memories(self, texts: Sequence[str]) -> Vector:
        """One row a text, in order; shape (len(texts), dimensions)."""
        ...

    def embed_query(self, text: str) -> Vector:
        """One vector of shape (dimensions,)."""
        ...


class Tool(Struct, frozen=True):
    """A tool for a model: a name every provider accepts, when to call it, and its arguments as JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(Struct, frozen=True):
    """A call as the model made it. `fault` says why its arguments could not be read; they are then empty."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""


class Message(Struct, frozen=True):
    """One message. Of several system messages at the start, all but the last are the same from turn to turn."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


class Usage(Struct, frozen=True):
    """Tokens as the provider counted them; zero where it does not say."""

    prompt: int = 0
    completion: int = 0


class Reply(Struct, frozen=True):
    """A model's answer. `cut` says why it is incomplete: a limit of tokens, or the provider withheld the rest."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    cut: Literal["", "length", "withheld"] = ""

    def whole_text(self) -> str:
        """Return the text of a complete answer. A part of an answer is an error, even if it can be read.

        Raises InvalidInput if a limit cut it, since a shorter answer may fit; ChatRefused if the provider withheld it.
        """
        if self.cut == "length":
            raise InvalidInput("the answer was cut off at the model's limit of tokens: a shorter one is needed")
        if self.cut == "withheld":
            raise ChatRefused("the provider withheld a part of the answer", fix="use another model, or the rules")
        return self.text


class Chat(Protocol):
    """One reply to a conversation. Raises ChatError, of which ChatUnavailable may be tried again later."""

    @property
    def name(self) -> str: ...

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """The whole exchange ends within `timeout` seconds. `on_text` is given the text as it arrives."""
        ...


class ModelTrial(Struct, frozen=True):
    """Whether a model can be used, or what came of one question to it. `host` is where it went; empty if nowhere."""

    name: str
    works: bool
    took_ms: float
    said: str = ""
    reason: str = ""
    fix: str = ""
    host: str = ""


class ModelsInUse(Struct, frozen=True):
    """The models that the settings name, what they may use in a day, and where memory is. No key is part of it."""

    chat_setting: str
    chat: ModelTrial
    embedder_setting: str
    embedder: ModelTrial
    tokens_a_day: int | None
    cost_a_day: float | None
    data: str
    database: str


@runtime_checkable
class EmbeddingChat(Protocol):
    """A chat that understands more with an embedder. An agent gives it the embedder of its workspace."""

    def with_embedder(self, embedder: Embedder | None) -> Chat: ...


INSIDE = "LUKASA_INSIDE"  # set for programs that a chat provider runs; hooks in them do nothing


class Committed(Struct, frozen=True):
    """A commit of the curated file: the version it says it is of, or None for somebody else's, and the text in it."""

    id: str
    version: int | None
    body: str


class CuratedFile(Protocol):
    """MEMORY.md in a folder of its own, under git. The file can be had without git; commits cannot."""

    @property
    def path(self) -> Path: ...
    def locked(self) -> AbstractContextManager[None]:
        """One process at a time writes the file or commits."""
        ...

    def read(self) -> str | None:
        """The text as it lies there, without its closing line break; None if there is no file."""
        ...

    def write(self, body: str, *, instead_of: str | None) -> bool:
        """Put the text there whole, unless the file is no longer what was read: then nothing happens, and False."""
        ...

    def commits(self) -> Iterator[Committed]:
        """The newest first. GitMissing if there is no git, GitError if it cannot."""
        ...

    def commit(self, body: str, *, version: int, message: str, author: str, at: datetime) -> str:
        """One commit with this text, whatever lies in the folder now; its id. Makes the repository if there is none."""
        ...

    def keep(self, patterns: Sequence[str], *, author: str, at: datetime) -> int:
        """One commit with the other files of the folder that match and have changed; returns how many these are."""
        ...

    def kept(self, patterns: Sequence[str]) -> Mapping[str, bytes]:
        """The other files of the last commit that match, by name."""
        ...

    def put_back(self, name: str, data: bytes) -> bool:
        """Write another file of the folder, unless there is one of that name; say whether it was written."""
        ...


class Notice(Struct, frozen=True):
    """A message to a program of the user's. Whoever gets the same id twice may leave out the second one."""

    id: str
    body: bytes


class NoticeChannel(Protocol):
    """A command or a URL that takes notices."""

    @property
    def name(self) -> str:
        """The kind of channel, without its address or arguments."""
        ...

    def send(self, notice: Notice) -> None:
        """Deliver a notice within a deadline. NoticeFailed if it was not taken, or nobody can know."""
        ...


class LogFile(Protocol):
    """Lines that are added and never changed, by any number of processes at once."""

    @property
    def path(self) -> Path: ...
    def append(self, line: str) -> None:
        """On disk as a line of its own when this returns, also after a line that was cut off."""
        ...

    def lines(self) -> Iterator[bytes]:
        """Oldest first, without line breaks. A last line without one is still being written, or was cut off."""
        ...


class ErasableFiles(Protocol):
    """The files beside the store: the curated document with its history, the log, decision records."""

    def holding(self, words: Words) -> dict[str, int]:
        """By file, how often it holds some words."""
        ...

    def erase(self, words: Words) -> None:
        """Take some words out of the files, and out of the history of those under git."""
        ...

    def elsewhere(self) -> Sequence[str]:
        """The names of repositories elsewhere that may have a copy."""
        ...


class DecisionFolder(Protocol):
    """A folder of markdown files, and the highest number that any of them ever had."""

    @property
    def path(self) -> Path: ...
    def locked(self) -> AbstractContextManager[None]:
        """One process at a time changes the folder."""
        ...

    def names(self) -> list[str]: ...
    def read(self, name: str) -> str: ...
    def create(self, name: str, text: str) -> None:
        """A file that was not there. Conflict if it is."""
        ...

    def replace(self, name: str, text: str) -> None: ...
    def highest(self) -> int:
        """The mark that `reserve` left; 0 if there is none."""
        ...

    def reserve(self, number: int) -> None:
        """Remember on disk that the number is taken, before a file has it."""
        ...


CHECKPOINTS = "checkpoints.db"


def lock_name(conversation: Conversation) -> str:
    """The file that a process locks while it leads a conversation."""
    return f"chat-{conversation.ref_code}.lock"


class Threads(Protocol):
    """The chats of a workspace: who leads each, and LangGraph's state of it. A thread is a conversation's id."""

    def lead(self, conversation: Conversation) -> AbstractContextManager[None]:
        """Lead a conversation, which only one process can; when that process dies, nobody leads it."""
        ...

    def led(self, conversation: Conversation) -> bool:
        """Whether a living process leads this conversation now."""
        ...

    def saver(self) -> AbstractContextManager[Any]:
        """Open LangGraph's saver of the states."""
        ...

    def kept(self, thread: str) -> int:
        """How many rows there are of a thread."""
        ...

    def purge(self, thread: str) -> None:
        """Remove a thread's rows, and their words from the file."""
        ...

    def holding(self, words: Words) -> list[str]:
        """The threads whose rows hold some words."""
        ...


class DocumentParser(Protocol):
    """Makes plain text by parts of a file that nobody trusts, within bounds of time, memory and size."""

    def parse(self, data: bytes, *, name: str, media_type: str = "") -> ParsedDocument:
        """The document in these bytes. The name of the file and its media type say which format it may have.

        Raises UnreadableDocument for bytes that are no document, or one beyond the bounds; MissingExtra if the format
        needs a package that is not installed.
        """
        ...


class DocumentFiles(Protocol):
    """Files of this machine that may become documents. They are read, and never written."""

    def find(self, path: str) -> FoundFiles:
        """The file at a path, or those of the folder there that hold documents.

        NotFound if there is nothing, InvalidInput for what is neither a file nor a folder, or has too many files.
        """
        ...

    def read(self, file: FoundFile) -> bytes:
        """The bytes of a file. UnreadableFile if it is gone, closed to this user, too large or no regular file."""
        ...

    def absolute(self, path: str) -> str:
        """The absolute path, whether there is anything or not."""
        ...

    def gone(self, location: str) -> bool:
        """Whether there is no file at a path any more; False as well if nobody can know."""
        ...


# Cuts a document into passages of a size that a search can return. Whoever stores them numbers them.
Splitter: TypeAlias = "Callable[[ParsedDocument], Sequence[Passage]]"


class Fetched(Struct, frozen=True):
    """A resource as a server gave it. Without `data` it has not changed since the version that was named."""

    url: str  # after redirects
    media_type: str  # with its parameters, as the server says it
    data: bytes | None
    etag: str = ""
    modified: str = ""
    public: bool = True  # all addresses that were asked are of the public internet


class Fetcher(Protocol):
    """Gets what a URL names. Only public addresses, unless the settings allow others; bounded in size and time."""

    def fetch(
        self, url: str, *, etag: str = "", modified: str = "", public_only: bool = False, robots: bool = False
    ) -> Fetched:
        """Raises AddressRefused for an address that may not be asked, FetchFailed if there is no usable answer.

        `public_only` is for a URL that a public page named: it must not reach what the owner allows besides. `robots`
        is for a URL that nobody asked for by itself: the site's robots.txt may refuse it.
        """
        ...


class Web(Fetcher, Protocol):
    """What the web holds besides single files: repositories, and feeds."""

    def clone(self, url: str, *, local: bool = False) -> Repository:
        """The newest commit of the repository at a URL; with `local` also at a file:// URL.

        Raises AddressRefused, FetchFailed if there is no repository, GitMissing without git.
        """
        ...

    def is_feed(self, fetched: Fetched) -> bool: ...
    def feed(self, fetched: Fetched) -> Feed:
        """The feed that was fetched. Raises UnreadableDocument if it is none."""
        ...

    def feed_links(self, fetched: Fetched) -> tuple[FeedLink, ...]:
        """The feeds that a page names."""
        ...


# A span covers a piece of work: its name, and what is known of it before. Within, a note adds what is known after.
Note = Callable[[Mapping[str, Any]], None]
Span = Callable[[str, Mapping[str, Any]], AbstractContextManager[Note]]


def ignore_note(about: Mapping[str, Any]) -> None:
    """Note nothing."""


def no_span(name: str, about: Mapping[str, Any]) -> AbstractContextManager[Note]:
    return nullcontext(ignore_note)


def within(span: Span, place: Mapping[str, Any]) -> Span:
    """Return a span that also says where the work is done."""
    return lambda name, about: span(name, {**place, **about})


def nested(outer: Span, inner: Span) -> Span:
    """Return a span that opens both. A note goes to the inner one."""

    @contextmanager
    def span(name: str, about: Mapping[str, Any]) -> Iterator[Note]:
        with outer(name, about), inner(name, about) as note:
            yield note

    return span


Aside = Literal["", "harness", "sidechain", "summary", "system", "thinking", "tool-call", "tool-result", "other"]


class Piece(Struct, frozen=True):
    """One thing that a record holds. `aside` says what it is if it was not said: a tool's output, a summary …

    `id` is the same whenever the file is read again. `failed` marks the output of a tool that did not do its work.
    """

    id: str
    role: Role
    text: str
    at: datetime | None = None
    aside: Aside = ""
    failed: bool = False


class Recording(Struct, frozen=True):
    """A session as its file tells it. Without an id of its own, a session is known by the ids of its pieces.

    `broken` are the lines that could not be read.
    """

    format: str
    session: str
    title: str
    started_at: datetime | None
    pieces: tuple[Piece, ...]
    broken: tuple[int, ...] = ()
    folder: str = ""  # of the project that the session worked in, if its file says


class TranscriptReader(Protocol):
    def read(self, path: str, *, tail: int | None = None) -> Recording:
        """The session in a file, or with `tail` what the last so many bytes hold of it.

        Raises InvalidInput for a file that cannot be read or is none of the formats; a broken line is only reported.
        """
        ...

    def walk(self, folder: str, patterns: Collection[str]) -> list[str]:
        """The files of a folder and those below it that fit a pattern, ordered by when each session began.

        A file that holds no time counts from its last change.
        """
        ...


class PastTalk(Struct, frozen=True):
    """A conversation that another program recorded, and the file that it comes from."""

    recording: Recording
    file: str


Past: TypeAlias = "PastStatement | PastTalk | PastSkipped"


class PastReader(Protocol):
    """Reads what other programs remember. Reading changes nothing, and follows no link out of the folder named."""

    def recognise(self, path: str, called: str = "") -> str:
        """The name of the format of a file or folder. `called` is its name for people, if that is not its path.

        Raises UnreadablePast, with all formats that are understood, for one of none.
        """
        ...

    def read(self, path: str, format: str = "", called: str = "") -> Iterator[Past]:
        """What a file or folder holds, in an order that is the same each time.

        Raises UnreadablePast, with the place, for a file that is damaged or beyond the bounds.
        """
        ...


class ProjectFiles(Protocol):
    """The files of one project: a folder, and nothing outside of it. Paths are relative to that folder, with `/`."""

    @property
    def root(self) -> Path: ...
    @property
    def identity(self) -> str:
        """The name of the project on every machine: its remote repository, its first commit, or its folder's name."""
        ...

    def is_called(self, identity: str) -> bool:
        """Whether the project has that identity, also beside its first one."""
        ...

    def revision(self) -> str:
        """The commit that is checked out; empty without one."""
        ...

    def claimed(self) -> str:
        """The identity by which the project's workspace is found: a remote repository or a first commit; may be empty.

        A `.git` that only points to another project's counts for nothing.
        """
        ...

    def first_commit(self) -> str:
        """The first commit of the history; empty without one, in a shallow clone, or if git takes too long."""
        ...

    def descends_from(self, commit: str) -> bool:
        """Whether the repository's own history begins with a commit. Git is asked once for each repository."""
        ...

    def relative(self, path: str) -> str | None:
        """The path of a regular file inside the project in its one spelling; None for everything else."""
        ...

    def read(self, path: str) -> SourceText | None:
        """The text of a file of the project; None if there is no such file.

        Raises OutsideProject for a path that leads out of the project, UnreadableFile for a file that is too large, no
        regular file or closed to this user.
        """
        ...

    def renamed(self, path: str, since: str, until: float) -> str | None:
        """Where git knows that a file went after a commit; None if it does not know. TimeoutError after `until`."""
        ...

    def candidates(self, path: str, until: float) -> Iterator[str]:
        """Files to which one that is gone may have been renamed without git's knowledge, the likeliest first.

        TimeoutError after `until`, a moment of the monotonic clock.
        """
        ...

    def mentions(self, word: str, ending: str, until: float) -> list[str]:
        """Files whose names end so and that hold a word; none without git. TimeoutError after `until`."""
        ...


class Projects(Protocol):
    """The projects of this machine: the one in a folder, and those that were at hand before."""

    def at(self, folder: str, *, in_git: bool = False) -> ProjectFiles | None:
        """The project that a folder is in; None for the home folder, the root of the disk, or no folder.

        With `in_git`, only one that is under git: the folder was named by a file and not by the user.
        """
        ...

    def known(self, identity: str) -> ProjectFiles | None:
        """The project of that identity, in the folder where it was last at hand, if it is still there."""
        ...

    def remember(self, project: ProjectFiles) -> None:
        """Note the folder of a project on this machine."""
        ...


class SyncRemote(Protocol):
    """The place through which machines exchange files. Each machine writes its own, and reads those of the others."""

    @property
    def name(self) -> str:
        """The place, as people call it."""
        ...

    @property
    def keeps_old(self) -> str:
        """What the place may keep of files that were replaced; empty if nothing."""
        ...

    def refresh(self) -> None:
        """See what others wrote. Raises if the place is not there."""
        ...

    def mark(self) -> bytes | None:
        """The file that says which memory this is; None if there is none."""
        ...

    def put_mark(self, data: bytes) -> None:
        """Claim the place for a memory. Conflict if it is taken."""
        ...

    def machines(self) -> list[str]: ...
    def files(self, machine: str) -> Mapping[str, int]:
        """The sizes of a machine's files, by name."""
        ...

    def read(self, machine: str, name: str, most: int) -> bytes | None:
        """The bytes of a file; None if it is gone. Refuses one with more than `most`."""
        ...

    def put(self, machine: str, name: str, data: bytes) -> None: ...
    def remove(self, machine: str, name: str) -> None: ...
    def publish(self, machine: str, *, anew: bool) -> None:
        """Let the others see what was put. With `anew`, no trace of the files before is left that can be removed."""
        ...


class Sealing(Protocol):
    """What machines of one memory sign and seal. What others made is judged; `where` names it in the errors."""

    def new_key(
        self,
        number: int,
        cards: Sequence[Card],
        *,
        removed: Sequence[Removal] = (),
        passphrase: str | None = None,
        ring: Sequence[SharedKey] = (),
    ) -> tuple[SharedKey, Rekey]: ...
    def taken(self, rekey: Rekey, machine: str, secrets: Secrets, where: str) -> list[SharedKey]: ...
    def unlocked(self, rekey: Rekey, passphrase: str, where: str) -> list[SharedKey] | None: ...
    def card(self, card: Card, secrets: Secrets, key: SharedKey) -> bytes: ...
    def open_card(self, data: bytes, machine: str, keys: Mapping[str, SharedKey], where: str) -> Card | None: ...
    def note(self, note: SyncNote, secrets: Secrets, key: SharedKey) -> bytes: ...
    def open_note(self, data: bytes, card: Card, keys: Mapping[str, SharedKey], where: str) -> SyncNote | None: ...
    def pack(self, bundle: Bundle, secrets: Secrets, key: SharedKey, rekey: Rekey | None = None) -> bytes: ...
    def header(self, data: bytes, card: Card, where: str) -> Header: ...
    def claimed(self, data: bytes, where: str) -> Header:
        """What a bundle says of itself. Nothing of it is proved."""
        ...

    def unpack(self, data: bytes, card: Card, key: SharedKey, where: str) -> Opened: ...
    def without(self, data: bytes, digests: Collection[str], secrets: Secrets, key: SharedKey) -> bytes | None: ...


class SyncPlace(Protocol):
    """What a machine keeps of a sync: its state with its private keys, and the bundles that it wrote."""

    def held(self) -> AbstractContextManager[None]:
        """One process at a time syncs. StoreBusy if another one does."""
        ...

    def load(self) -> SyncState | None: ...
    def save(self, state: SyncState) -> None: ...
    def bundle(self, number: int) -> bytes | None: ...
    def sizes(self) -> Mapping[int, int]:
        """The bytes of each bundle that this machine wrote, by number."""
        ...

    def keep(self, number: int, data: bytes) -> None: ...
    def clear(self) -> None:
        """Forget the keys, the state and the bundles."""
        ...


class SyncParts(Protocol):
    """What makes the parts of a sync."""

    def place(self) -> SyncPlace: ...
    def sealing(self, memory: str) -> Sealing: ...
    def remote(self, address: str) -> SyncRemote: ...
    def new_machine(self) -> tuple[Secrets, str, str]:
        """The private keys of a machine, and its two public ones."""
        ...
