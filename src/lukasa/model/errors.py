"""Every error Lukasa raises on purpose.

Each says what happened and, in `fix`, what to change. Foreign errors (SQLite, the file system, a model runtime)
are translated at the border that meets them.

    LukasaError
    ├── InvalidInput               the call itself is wrong; nothing was written
    │   ├── InvalidContent         empty, too long, NUL bytes, lone surrogates, wrong type
    │   ├── InvalidImportance      not a finite number in [0, 1]
    │   ├── InvalidScope           unknown tier, missing or unknown scope key
    │   ├── InvalidQuery           unusable limit, time, filter or profile
    │   ├── InvalidDecision        a decision record that cannot be read as one
    │   ├── UnreadableDocument     a file that is no document, or one beyond the bounds of size, pages or time
    │   ├── UnreadableExport       a file that is no export, or not as it was written: cut off or altered
    │   ├── UnreadableFile         a file that cannot be cited: too large, not a regular file, or closed to this user
    │   └── UnreadablePast         a file to import that is of no known format, damaged, or beyond the bounds
    ├── NotFound                   nothing of that id in this workspace (foreign ids answer the same)
    ├── Refused                    well-formed, but the spec or the posture forbids it
    │   ├── MirrorsCanonical       repeats a body that must only be referenced
    │   ├── WrongTier              the tier does not take such a text; another one does
    │   ├── ReadOnlyForAgents      an agent tried to edit a named entry
    │   ├── InvalidTransition      a conversation or entry cannot go from here to there
    │   ├── OutsideProject         a path that leads out of the project at hand: such files are never opened
    │   ├── AddressRefused         a URL that may not be asked: not public, not http(s)
    │   └── Forbidden              the credential does not allow it
    ├── Unauthenticated            no credential, or one that is not valid (any more)
    ├── Conflict                   the thing changed since it was read
    │   └── DocumentMoved          a document changed after a change of it was submitted
    ├── LostClaim                  another worker has taken the job; this worker may write nothing more for it
    ├── SpecError                  a spec file is incomplete or inconsistent
    ├── StoreError                 the database cannot do it
    │   ├── StoreBusy              another process held the file too long
    │   ├── StoreUnreachable       the database server does not answer
    │   ├── StoreFull              no space left on the disk; acknowledged writes are kept
    │   ├── StoreDamaged           not readable as the database it should be
    │   ├── Damaged                one text in it is not the one that was written
    │   ├── StoreForeign           a database, but not ours
    │   ├── StoreNewer             written by a newer Lukasa
    │   ├── StoreUnfinished        half of a move: to be finished or cleared
    │   └── StoreMissing           known to have existed, and gone
    ├── GitError                   git could not do it; the file itself is written
    │   └── GitMissing             git is not installed on this machine
    ├── FetchFailed                a server gave no usable answer; nothing was written
    ├── SyncError                  this machine cannot sync as it is
    │   ├── BundleRefused          a file of another machine is not what that machine wrote; nothing of it was taken
    │   ├── BundleUnfinished       a file of another machine has not been copied whole yet
    │   ├── NotAMember             this machine was removed, or does not have the key that the others use now
    │   ├── SyncNewer              written by a newer Lukasa
    │   └── WrongPassphrase        the passphrase opens no key
    ├── MissingExtra               the package that this needs is not installed
    ├── EmbedderError              an embedding model cannot be loaded or used
    │   └── ModelUnavailable       its files are absent or do not match their hash
    └── ChatError                  a language model gave no usable reply; no data of the user was lost
        ├── ChatUnavailable        no answer in time, no connection, or the provider is overloaded
        ├── ChatRefused            the provider refuses to answer: a key, a model name, a limit
        └── ChatMalformed          an answer that cannot be parsed, after one retry
"""

from __future__ import annotations

MOST_SAID = 2_000  # characters of a message, and of a fix
MOST_DIFF = 20_000  # characters of the difference between two texts that an error shows


def brief(text: object, most: int = MOST_SAID) -> str:
    """Return a text for an error, however it came about: cut in its middle, and without what cannot be printed."""
    said = str(text)
    if len(said) > most:
        half = most // 2
        said = f"{said[:half]} … {len(said) - 2 * half:,} characters … {said[-half:]}"
    return said if said.isascii() else said.encode("utf-8", "backslashreplace").decode("utf-8")


class LukasaError(Exception):
    """Base of all errors raised on purpose; `fix` is the next step for the reader.

    Whatever a message quotes, it is short: the input of a caller may be long, and a log or a model reads it all.
    """

    def __init__(self, message: str, *, fix: str = "") -> None:
        self.message = brief(message)
        self.fix = brief(fix)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message

    @property
    def code(self) -> str:
        """A stable machine-readable name: the class name in kebab-case."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class InvalidInput(LukasaError, ValueError):
    """The call itself is wrong; nothing was written."""


class InvalidContent(InvalidInput):
    """Content that cannot be a memory."""


class InvalidImportance(InvalidInput):
    """Importance that is not a finite number in [0, 1]."""


class InvalidScope(InvalidInput):
    """A tier or scope key that the spec does not know, or a required one left out."""


class InvalidQuery(InvalidInput):
    """A limit, time, filter or profile that cannot be used."""


class InvalidDecision(InvalidInput):
    """A decision record that cannot be read as one."""


class UnreadableDocument(InvalidInput):
    """A file is no document of a format that is understood, or is beyond the bounds of size, pages or time."""


class UnreadableExport(InvalidInput):
    """A file is no export, or not as it was written: cut off, altered, or of another version."""


class UnreadableFile(InvalidInput):
    """A file of the project that cannot be cited: too large, not a regular file, or closed to this user."""


class UnreadablePast(InvalidInput):
    """A file to import is of no format that is understood, is damaged, or is beyond the bounds of size."""


class NotFound(LukasaError, LookupError):
    """Nothing has that id here. An id of another workspace gets exactly this answer."""


class Refused(LukasaError):
    """Well-formed, but the spec or the audit posture forbids it."""


class MirrorsCanonical(Refused):
    """The text repeats a canonical body; `mirrors` is the id of that body."""

    def __init__(self, message: str, *, mirrors: str, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.mirrors = mirrors


class WrongTier(Refused):
    """The tier does not take a text of this kind; `tier` is one that does, or empty."""

    def __init__(self, message: str, *, tier: str, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.tier = tier


class ReadOnlyForAgents(Refused):
    """Only the author edits named entries; agents read them."""


class InvalidTransition(Refused):
    """A state change that the life cycle does not have."""


class OutsideProject(Refused):
    """A path leads out of the project at hand. Such files are never opened."""


class AddressRefused(Refused):
    """A URL may not be asked: its address is not public, or its scheme is not http or https."""


class Contradicts(Refused):
    """The text contradicts more trusted entries, and the caller may not decide about that; `against` has their ids."""

    def __init__(self, message: str, *, against: tuple[str, ...], fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.against = against


class Forbidden(Refused):
    """The credential is valid, but does not allow this."""


class Unauthenticated(LukasaError):
    """No credential, or a malformed, unknown, expired or revoked one: the answer is the same for all of these."""


class Conflict(LukasaError):
    """The thing changed after it was read; read it again and decide again."""


class DocumentMoved(Conflict):
    """A document has changed since somebody submitted a change of it; `diff` shows how, by words."""

    def __init__(self, message: str, *, diff: str, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.diff = brief(diff, MOST_DIFF) if diff else ""


class LostClaim(LukasaError):
    """Another worker has taken the job, or it was cancelled: this worker may write nothing more for it."""


class SpecError(LukasaError):
    """A spec that cannot be used. `file` and `key` say where, `fix` says what to write there."""

    def __init__(self, message: str, *, file: str = "", key: str = "", fix: str = "") -> None:
        where = ": ".join(part for part in (file, key) if part)
        super().__init__(f"{where}: {message}" if where else message, fix=fix)
        self.file = file
        self.key = key


class ExpectationsError(SpecError):
    """A file of expectations that cannot be checked. `file` and `key` say where, `fix` says what to write there."""


class StoreError(LukasaError):
    """The database cannot do what was asked; the write was not acknowledged."""


class StoreBusy(StoreError):
    """Another process held the file longer than the timeout."""


class StoreUnreachable(StoreError):
    """The database server does not answer, or went away in the middle. What was acknowledged is kept."""


class StoreFull(StoreError):
    """No space left on the disk. Acknowledged writes are kept; the failed one left nothing."""


class StoreDamaged(StoreError):
    """The file is not readable as the database it should be."""


class Damaged(StoreError):
    """One entry, page, document or message is not what was written. The rest of the store can be used."""

    def __init__(self, what: str) -> None:
        fix = "`lukasa doctor` lists all damage, and `lukasa doctor --repair` mends it where a second copy is sound"
        super().__init__(f"{what} is damaged: the file holds another text than the one that was written", fix=fix)


class StoreForeign(StoreError):
    """A database file, but not one of Lukasa's."""


class StoreNewer(StoreError):
    """Written by a newer Lukasa; this one must not touch it."""


class StoreUnfinished(StoreError):
    """Memory that a move or an import has not brought over whole; it is opened once that is finished."""

    def __init__(self, where: str) -> None:
        fix = "give the same move or import again to finish it, or clear it: `lukasa move --to … --clear`"
        super().__init__(f"{where}: memory is being moved here, and the move is not finished", fix=fix)


class StoreMissing(StoreError):
    """A database that is known to have existed is gone; Lukasa never replaces it by an empty one."""


# Decoding raises these when it meets a row that nobody wrote.
UNREADABLE = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError)


class LostWrites(UserWarning):
    """Writes that were acknowledged are gone from the database. A warning: what is left can be used."""


class GitError(LukasaError):
    """Git could not do it. The database and the file are not affected."""


class GitMissing(GitError):
    """There is no git on this machine; the file is written without a commit."""


class NoticeFailed(LukasaError):
    """A command or URL that is told what waits for a person did not take it; a worker tries it again."""


class FetchFailed(LukasaError):
    """A server gave no usable answer; nothing was written.

    `status` is the number that it answered with, if it did; `retry_after` the pause in seconds that it asks for.
    """

    def __init__(
        self, message: str, *, fix: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.status = status
        self.retry_after = retry_after


class SyncError(LukasaError):
    """This machine cannot sync as it is; its memory can be used."""


class BundleRefused(SyncError):
    """A file of another machine is not what that machine wrote: forged, altered, cut off or out of its place.

    Nothing of it was taken. The message names the file and the machine.
    """


class BundleUnfinished(SyncError):
    """A file of another machine ends too early. It may still be on its way, so the next sync looks again."""


class NotAMember(SyncError):
    """This machine was removed from the sync, or does not have the key that the others use now."""


class SyncNewer(SyncError):
    """Written by a newer Lukasa; nothing of it was taken."""


class WrongPassphrase(SyncError):
    """The passphrase opens no key of this memory."""


class MissingExtra(LukasaError):
    """The package that this needs is not installed; the fix names the extra."""


class EmbedderError(LukasaError):
    """An embedding model cannot be loaded or used."""


class ModelUnavailable(EmbedderError):
    """Model files are absent or do not match their recorded hash."""


class ChatError(LukasaError):
    """A language model gave no usable reply; no data of the user was lost."""


class ChatUnavailable(ChatError):
    """No answer in time, no connection, or an overloaded provider; it may work later.

    `retry_after` is the pause in seconds that the provider asks for, if it asks.
    """

    def __init__(self, message: str, *, fix: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, fix=fix)
        self.retry_after = retry_after


class ChatRefused(ChatError):
    """The provider refuses the request as it is: a wrong key, model name or limit."""


class ChatMalformed(ChatError):
    """An answer that cannot be parsed, after one retry."""
