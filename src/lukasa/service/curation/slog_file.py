"""The structured log of a workspace: actions with their reasons, in an append-only file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec import Struct

from lukasa.curated import slog
from lukasa.curated.slog import LogEntry, LogPage, LogQuery
from lukasa.model.errors import Refused
from lukasa.model.secrets import redact_all
from lukasa.ports import LogFile
from lukasa.service import inputs
from lukasa.service.call import CallContext
from lukasa.service.curation import kept_records
from lukasa.service.instrument import verb

MOST_LISTED = 1000


class Slog(Struct, frozen=True):
    """The structured log. Agents may write to it; nobody may change an entry."""

    ctx: CallContext

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def _file(self) -> LogFile:
        if self.ctx.log_file is None:
            raise Refused("this memory is kept in the process and has no log file", fix="open memory in a folder")
        return self.ctx.log_file

    @verb("log", "write")
    def write(self, action: str, tool: str, detail: str, *, reason: str = "") -> LogEntry:
        """Append an entry without secrets; it is on disk when this returns."""
        self.ctx.require_agent("write the log")
        line = slog.compose(self.ctx.now, *redact_all([action, tool, detail, reason]))
        self._file.append(line)
        kept_records.commit_later(self.ctx)
        entry = slog.read(0, f"{line}\n".encode())
        assert entry is not None
        return entry

    def query(
        self,
        *,
        action: str | None = None,
        tool: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        grep: str | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> LogPage:
        """Return the newest entries that meet all conditions, newest first."""
        asked = LogQuery(
            action,
            tool,
            inputs.moment(since, "since") if since is not None else None,
            inputs.moment(until, "until") if until is not None else None,
            grep,
            before,
            inputs.limit(limit, MOST_LISTED),
        )
        return slog.select(self._file.lines(), asked)
