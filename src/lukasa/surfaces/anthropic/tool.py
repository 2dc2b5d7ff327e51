"""Anthropic's memory tool: six commands on a workspace, each answered with text."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lukasa.model.disclosure import Shown
from lukasa.model.entry import Entry
from lukasa.model.errors import Conflict, InvalidInput, LukasaError, NotFound
from lukasa.model.text import estimate_tokens
from lukasa.model.values import VISIBILITY, State, Trust, Visibility
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries import filed_entries
from lukasa.service.entries.put import Written
from lukasa.service.retrieval import disclosing
from lukasa.service.workspace import Workspace
from lukasa.surfaces.anthropic import command_text
from lukasa.surfaces.anthropic.command_text import Command, Leaf, ToolRefusal, shown
from lukasa.surfaces.anthropic.paths import ENTRIES, NAMED, ROOT, Area, Layout, MemoryPath

SURFACE = "anthropic-memory-tool"
LISTED = 200  # the newest entries of a tier in a listing; `view` shows any entry by its id


class MemoryTool:
    """Answers the commands of Anthropic's memory tool from a workspace. Every answer is text, refusals too.

    The model writes with at most an agent's trust, also through an owner's workspace; `world.acting(agent=…)` gives it
    a name. The tool keeps no state: one tool may serve many threads, and many tools one workspace.
    """

    name = "memory"

    def __init__(self, world: Workspace) -> None:
        ctx = world.acting(trust=Trust.AGENT).ctx
        self._ctx: CallContext = replace(ctx, origin=replace(ctx.origin, surface=SURFACE))
        self._layout = Layout.of(ctx.spec.tiers, ctx.reachable())
        self._commands: dict[str, Callable[[Command], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def definition(self) -> dict[str, str]:
        """Return the tool's definition for the `tools` of a request."""
        return {"type": "memory_20250818", "name": self.name}

    def call(self, input: object) -> str:
        """ToolRefusal the input of a tool_use block."""
        try:
            return self.attempt(input)
        except ToolRefusal as refusal:
            return str(refusal)

    def attempt(self, input: object) -> str:
        """As `call`, but raise `ToolRefusal` for a refused command, for callers that mark it as an error."""
        command = Command(input).get("command")
        if not isinstance(command, str) or command not in self._commands:
            raise ToolRefusal(f"Error: Unknown command: {shown(command)}. Use one of: {', '.join(self._commands)}")
        return self._attempt(command, input)

    def view(self, command: object) -> str:
        """Show a directory, two levels deep, or a file with line numbers: `path`, and for a file `view_range`."""
        return self._answer("view", command)

    def create(self, command: object) -> str:
        """Create a file: `path`, `file_text`."""
        return self._answer("create", command)

    def str_replace(self, command: object) -> str:
        """Replace the one occurrence of a text in a file: `path`, `old_str`, `new_str`."""
        return self._answer("str_replace", command)

    def insert(self, command: object) -> str:
        """Add lines after a line of a file: `path`, `insert_line`, `insert_text`."""
        return self._answer("insert", command)

    def delete(self, command: object) -> str:
        """Forget a file, or a folder with all its files: `path`."""
        return self._answer("delete", command)

    def rename(self, command: object) -> str:
        """Move a file or a folder: `old_path`, `new_path`."""
        return self._answer("rename", command)

    def _answer(self, name: str, given: object) -> str:
        try:
            return self._attempt(name, given)
        except ToolRefusal as refusal:
            return str(refusal)

    def _attempt(self, name: str, given: object) -> str:
        try:
            return self._commands[name](Command(given))
        except ToolRefusal as refusal:
            text = str(refusal).encode("utf-8", "backslashreplace").decode("utf-8")  # it may repeat lone surrogates
            raise ToolRefusal(text) from None
        except Conflict:
            raise ToolRefusal(
                "Error: The memory changed at the same moment. Nothing was done; view it again and repeat the command"
            ) from None
        except LukasaError as error:
            raise ToolRefusal(f"Error: {error}") from error

    # Commands

    def _view(self, command: Command) -> str:
        target = self._target(command, "path")
        lines = command.lines()
        text = self._text(target)
        if text is not None:
            told = command_text.numbered(target.given, text, lines)
            self._disclose(target, told)
            return told
        listed = self._listing(target)
        if listed is None:
            raise ToolRefusal(f"The path {target.given} does not exist. Please provide a valid path.")
        return listed

    def _create(self, command: Command) -> str:
        target, text = self._target(command, "path"), command.text("file_text")
        taken = ToolRefusal(f"Error: File {target.given} already exists")
        if target.area is Area.LAYOUT:
            raise taken
        self._require_file(target)
        if self._is_taken(target):
            raise taken
        self._require_folders(target)
        try:
            written = filed_entries.create(self._ctx, target.tier, target.path, text)
        except Conflict:
            raise taken from None
        return f"File created successfully at: {target.given}{_remark(written, text)}"

    def _str_replace(self, command: Command) -> str:
        target, old, new = self._target(command, "path"), command.text("old_str"), command.text("new_str")
        done = [("", 0)]

        def change(text: str) -> str:
            done[0] = command_text.replaced(target.given, text, old, new)
            return done[0][0]

        missing = f"Error: The path {target.given} does not exist. Please provide a valid path."
        written = self._rewrite(target, change, missing)
        text, line = done[0]
        now = written.entry.content if written.entry else text
        return command_text.edited(now, line, new) + _remark(written, text)

    def _insert(self, command: Command) -> str:
        target = self._target(command, "path")
        line, added = command.number("insert_line"), command.text("insert_text")
        done = [""]

        def change(text: str) -> str:
            done[0] = command_text.inserted(text, line, added)
            return done[0]

        written = self._rewrite(target, change, f"Error: The path {target.given} does not exist")
        return f"The file {target.given} has been edited.{_remark(written, done[0])}"

    def _delete(self, command: Command) -> str:
        target = self._target(command, "path")
        if not target.names:
            raise ToolRefusal(f"Error: Cannot delete the {ROOT} directory itself")
        self._require_movable(target)

        def attempt() -> None:
            filed_entries.remove(self._ctx, target.tier, self._at_or_under(target), "deleted with the memory tool")

        retry_on_conflict(attempt)
        return f"Successfully deleted {target.given}"

    def _rename(self, command: Command) -> str:
        old, new = self._target(command, "old_path"), self._target(command, "new_path")
        self._require_movable(old)
        taken = ToolRefusal(f"Error: The destination {new.given} already exists")

        def attempt() -> None:
            entries = self._at_or_under(old)
            if new.area is Area.LAYOUT or self._is_taken(new):
                raise taken
            self._require_file(new)
            if new.names[: len(old.names)] == old.names:
                raise ToolRefusal(f"Error: The destination {new.given} lies inside {old.given}")
            self._require_folders(new)
            paths = [new.path + (entry.path or "")[len(old.path) :] for entry in entries]
            self._move(old, new, list(zip(entries, paths, strict=True)))

        retry_on_conflict(attempt)
        return f"Successfully renamed {old.given} to {new.given}"

    def _move(self, old: MemoryPath, new: MemoryPath, moves: list[tuple[Entry, str]]) -> None:
        """Give entries other paths in their tier; for another tier, copy them and remove the originals."""
        if old.tier == new.tier:
            filed_entries.rename(self._ctx, old.tier, moves)
            return
        for entry, _ in moves:
            self._ctx.require_trust(entry, "rename")
        entries = [entry for entry, _ in moves]
        filed_entries.copy(self._ctx, new.tier, moves)
        try:
            filed_entries.remove(self._ctx, old.tier, entries, "moved to another tier with the memory tool")
        except Conflict:
            raise ToolRefusal(
                f"Error: {old.given} was edited while it was copied to {new.given}. Both are kept; delete one of them"
            ) from None

    # Targets

    def _target(self, command: Command, field: str) -> MemoryPath:
        return self._layout.locate(command.text(field))

    def _require_file(self, target: MemoryPath) -> None:
        """Refuse a target that is not a file."""
        match target.area:
            case Area.PAGE:
                raise ToolRefusal(
                    f"Error: {target.given} is read-only: the pages in {ROOT}/{NAMED} are the author's. "
                    "Write to another path, or ask the author to change it"
                )
            case Area.ENTRY:
                raise ToolRefusal(
                    f"Error: {target.given} is read-only: {ROOT}/{target.tier}/{ENTRIES} shows memories that are no "
                    "files. Write to another path"
                )
            case Area.UNBOUND:
                raise ToolRefusal(
                    f"Error: {target.given} belongs to a tier of memory that is not open here. Use another path"
                )

    def _require_movable(self, target: MemoryPath) -> None:
        if target.area is Area.LAYOUT:
            raise ToolRefusal(f"Error: {target.given} is a fixed folder and cannot be moved or deleted")
        self._require_file(target)

    def _require_folders(self, target: MemoryPath) -> None:
        """Refuse a target below a file."""
        for depth in range(1, len(target.names)):
            above = "/".join(target.names[:depth])
            if filed_entries.file(self._ctx, target.tier, above) is not None:
                raise ToolRefusal(f"Error: {ROOT}/{above} is a file, not a directory")

    def _is_taken(self, target: MemoryPath) -> bool:
        """Return whether a file or a folder has this path, also a file that may not be shown."""
        if target.area is not Area.FILE:
            return False
        return filed_entries.file(self._ctx, target.tier, target.path) is not None or bool(self._under(target))

    def _file(self, target: MemoryPath) -> Entry | None:
        """Return the file at a target, if there is one; refuse if it may not be shown."""
        if target.area is not Area.FILE:
            return None
        entry = filed_entries.file(self._ctx, target.tier, target.path)
        if entry is not None and not filed_entries.may_see(self._ctx, entry):
            raise ToolRefusal(f"Error: {target.given} is held until the author reviews it, and cannot be used yet")
        return entry

    def _under(self, target: MemoryPath) -> list[Entry]:
        return [e for e in filed_entries.files(self._ctx, target.tier) if (e.path or "").startswith(f"{target.path}/")]

    def _at_or_under(self, target: MemoryPath) -> list[Entry]:
        entry = self._file(target)
        found = [entry] if entry is not None else self._under(target)
        if not found:
            raise ToolRefusal(f"Error: The path {target.given} does not exist")
        return found

    # Reading and writing

    def _rewrite(self, target: MemoryPath, change: Callable[[str], str], missing: str) -> Written:
        if target.area in (Area.LAYOUT, Area.UNBOUND):
            raise ToolRefusal(missing)
        self._require_file(target)
        if self._file(target) is None:
            raise ToolRefusal(missing)
        try:
            return filed_entries.rewrite(self._ctx, target.tier, target.path, change)
        except NotFound:
            raise ToolRefusal(missing) from None

    def _text(self, target: MemoryPath) -> str | None:
        """Return the text of a target, None if it is not a file. The access counts as a read.

        A mark replaces each secret of a sensitive entry.
        """
        if target.area is Area.PAGE:
            pages = {f"{NAMED}/{page.name}.md": page.body for page in Workspace(self._ctx).named()}
            return pages.get("/".join(target.names))
        entry = self._entry(target) if target.area is Area.ENTRY else self._file(target)
        if entry is None:
            return None
        self._ctx.store(entry.scope.tier).touch([entry.id], self._ctx.now)
        return self._ctx.shown(entry).content

    def _disclose(self, target: MemoryPath, told: str) -> None:
        """Note the file, entry or page of a view in the disclosure ledger."""
        tokens = estimate_tokens(told)
        if target.area is Area.PAGE:
            pages = [page for page in Workspace(self._ctx).named() if target.names[-1] == f"{page.name}.md"]
            shown = [(page.tier, Shown(page.name, page.version, tokens, page=True)) for page in pages]
        else:
            entry = self._entry(target) if target.area is Area.ENTRY else self._file(target)
            shown = [(entry.scope.tier, Shown(entry.id, entry.version, tokens))] if entry is not None else []
        disclosing.disclose(self._ctx, "view", tokens, shown)

    def _entry(self, target: MemoryPath) -> Entry | None:
        try:
            entry = self._ctx.entry(target.names[2].removesuffix(".md"))[1]
        except (NotFound, InvalidInput):
            return None
        named = target.names == (target.tier, ENTRIES, f"{entry.id}.md")
        here = entry.scope == self._ctx.scope(target.tier) and VISIBILITY[entry.state] is Visibility.OPEN
        return entry if named and here and entry.path is None else None

    def _listing(self, target: MemoryPath) -> str | None:
        leaves = [
            Leaf(tuple((entry.path or "").split("/")), _bytes(entry.content))
            for tier in self._layout.bound
            for entry in filed_entries.files(self._ctx, tier)
        ]
        if target.area is not Area.LAYOUT and not any(
            leaf.names[: len(target.names)] == target.names for leaf in leaves
        ):
            return None
        leaves += [Leaf((NAMED, f"{page.name}.md"), _bytes(page.body)) for page in Workspace(self._ctx).named()]
        more = []
        for tier in self._layout.bound:
            others = filed_entries.others(self._ctx, tier, LISTED + 1)
            leaves += [Leaf((tier, ENTRIES, f"{e.id}.md"), _bytes(e.content)) for e in others[:LISTED]]
            if len(others) > LISTED and target.names[:1] == (tier,):
                more.append(f"\nOnly the newest {LISTED} of {ROOT}/{tier}/{ENTRIES} are listed.")
        path = "/".join((ROOT, *target.names))
        return command_text.listing(path, target.names, leaves, self._layout.folders()) + "".join(more)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def _remark(written: Written, text: str) -> str:
    """Return notes for the writer: that the text was changed, or that it is held."""
    said = ""
    if written.entry is not None and written.entry.content != text:
        said += "\nNote: the rules of this workspace changed the text before it was stored. View it before you edit it."
    if written.entry is not None and written.entry.state is State.HELD:
        gate = written.entry.gate
        reason = f" ({gate.reason})" if gate is not None and gate.reason else ""
        said += f"\nNote: it is held for the author to review{reason}. You can view it here, but reads do not find it."
    return said
