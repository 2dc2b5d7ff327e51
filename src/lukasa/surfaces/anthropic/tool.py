"""The memory tool itself: six commands on a workspace, each answered with text."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lukasa.model.entry import Entry
from lukasa.model.errors import Conflict, InvalidInput, LukasaError, NotFound
from lukasa.model.values import VISIBILITY, State, Trust, Visibility
from lukasa.service.call import CallContext, retry_on_conflict
from lukasa.service.entries import files
from lukasa.service.entries.put import Written
from lukasa.service.workspace import Workspace
from lukasa.surfaces.anthropic import answers
from lukasa.surfaces.anthropic.answers import Answer, Command, Leaf, shown
from lukasa.surfaces.anthropic.places import ENTRIES, NAMED, ROOT, Area, Layout, Place

SURFACE = "anthropic-memory-tool"
LISTED = 200  # entries of a tier in a listing, the newest; every one of them can be viewed by its id


class MemoryTool:
    """Answers the commands of Anthropic's memory tool from a workspace. Every answer is text, refusals too.

    The model writes with no more trust than an agent's, whoever's handle it is given; `world.acting(agent=…)` gives
    it a name. Nothing is kept here: one tool may serve many threads, and many tools one workspace.
    """

    name = "memory"

    def __init__(self, world: Workspace) -> None:
        ctx = world.acting(trust=Trust.AGENT).ctx
        self._room: CallContext = replace(ctx, origin=replace(ctx.origin, surface=SURFACE))
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
        """What to put among the `tools` of a request."""
        return {"type": "memory_20250818", "name": self.name}

    def call(self, input: object) -> str:
        """Answer the input of a tool_use block."""
        try:
            return self.attempt(input)
        except Answer as answer:
            return str(answer)

    def attempt(self, input: object) -> str:
        """As `call`, but a command that cannot be done raises `Answer`, for callers that mark it as an error."""
        command = Command(input).get("command")
        if not isinstance(command, str) or command not in self._commands:
            raise Answer(f"Error: Unknown command: {shown(command)}. Use one of: {', '.join(self._commands)}")
        return self._attempt(command, input)

    def view(self, command: object) -> str:
        """A directory, two levels deep, or a file with line numbers: `path`, and for a file `view_range`."""
        return self._answer("view", command)

    def create(self, command: object) -> str:
        """A new file: `path`, `file_text`."""
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
        except Answer as answer:
            return str(answer)

    def _attempt(self, name: str, given: object) -> str:
        try:
            return self._commands[name](Command(given))
        except Answer as answer:
            text = str(answer).encode("utf-8", "backslashreplace").decode("utf-8")  # it may repeat what is no text
            raise Answer(text) from None
        except Conflict:
            raise Answer(
                "Error: The memory changed at the same moment. Nothing was done; view it again and decide anew"
            ) from None
        except LukasaError as error:
            raise Answer(f"Error: {error}") from error

    # Commands

    def _view(self, command: Command) -> str:
        place = self._place(command, "path")
        lines = command.lines()
        text = self._text(place)
        if text is not None:
            return answers.numbered(place.given, text, lines)
        listed = self._listing(place)
        if listed is None:
            raise Answer(f"The path {place.given} does not exist. Please provide a valid path.")
        return listed

    def _create(self, command: Command) -> str:
        place, text = self._place(command, "path"), command.text("file_text")
        taken = Answer(f"Error: File {place.given} already exists")
        if place.area is Area.LAYOUT:
            raise taken
        self._require_file(place)
        if self._is_taken(place):
            raise taken
        self._require_folders(place)
        try:
            written = files.create(self._room, place.tier, place.path, text)
        except Conflict:
            raise taken from None
        return f"File created successfully at: {place.given}{_remark(written, text)}"

    def _str_replace(self, command: Command) -> str:
        place, old, new = self._place(command, "path"), command.text("old_str"), command.text("new_str")
        done = [("", 0)]

        def change(text: str) -> str:
            done[0] = answers.replaced(place.given, text, old, new)
            return done[0][0]

        missing = f"Error: The path {place.given} does not exist. Please provide a valid path."
        written = self._rewrite(place, change, missing)
        text, line = done[0]
        now = written.entry.content if written.entry else text
        return answers.edited(now, line, new) + _remark(written, text)

    def _insert(self, command: Command) -> str:
        place = self._place(command, "path")
        line, added = command.number("insert_line"), command.text("insert_text")
        done = [""]

        def change(text: str) -> str:
            done[0] = answers.inserted(text, line, added)
            return done[0]

        written = self._rewrite(place, change, f"Error: The path {place.given} does not exist")
        return f"The file {place.given} has been edited.{_remark(written, done[0])}"

    def _delete(self, command: Command) -> str:
        place = self._place(command, "path")
        if not place.names:
            raise Answer(f"Error: Cannot delete the {ROOT} directory itself")
        self._require_movable(place)

        def attempt() -> None:
            files.remove(self._room, place.tier, self._at_or_under(place), "deleted with the memory tool")

        retry_on_conflict(attempt)
        return f"Successfully deleted {place.given}"

    def _rename(self, command: Command) -> str:
        old, new = self._place(command, "old_path"), self._place(command, "new_path")
        self._require_movable(old)
        taken = Answer(f"Error: The destination {new.given} already exists")

        def attempt() -> None:
            entries = self._at_or_under(old)
            if new.area is Area.LAYOUT or self._is_taken(new):
                raise taken
            self._require_file(new)
            if new.names[: len(old.names)] == old.names:
                raise Answer(f"Error: The destination {new.given} lies inside {old.given}")
            self._require_folders(new)
            paths = [new.path + (entry.path or "")[len(old.path) :] for entry in entries]
            self._move(old, new, list(zip(entries, paths, strict=True)))

        retry_on_conflict(attempt)
        return f"Successfully renamed {old.given} to {new.given}"

    def _move(self, old: Place, new: Place, moves: list[tuple[Entry, str]]) -> None:
        """In its tier an entry gets another path. None leaves its tier: elsewhere a new one derives from it."""
        if old.tier == new.tier:
            files.rename(self._room, old.tier, moves)
            return
        for entry, _ in moves:
            self._room.require_trust(entry, "rename")
        entries = [entry for entry, _ in moves]
        files.copy(self._room, new.tier, moves)
        try:
            files.remove(self._room, old.tier, entries, "moved to another tier with the memory tool")
        except Conflict:
            raise Answer(
                f"Error: {old.given} was edited while it was copied to {new.given}. Both are kept; delete one of them"
            ) from None

    # Places

    def _place(self, command: Command, field: str) -> Place:
        return self._layout.place(command.text(field))

    def _require_file(self, place: Place) -> None:
        """Only files can be written. Everything else is somebody's, and says whose."""
        match place.area:
            case Area.PAGE:
                raise Answer(
                    f"Error: {place.given} is read-only: the pages in {ROOT}/{NAMED} are the author's. "
                    "Write to another path, or ask the author to change it"
                )
            case Area.ENTRY:
                raise Answer(
                    f"Error: {place.given} is read-only: {ROOT}/{place.tier}/{ENTRIES} shows memories that are no "
                    "files. Write to another path"
                )
            case Area.UNBOUND:
                raise Answer(
                    f"Error: {place.given} belongs to a tier of memory that is not open here. Use another path"
                )

    def _require_movable(self, place: Place) -> None:
        if place.area is Area.LAYOUT:
            raise Answer(f"Error: {place.given} is part of how memory is laid out and stays where it is")
        self._require_file(place)

    def _require_folders(self, place: Place) -> None:
        """No file can be a folder of another one."""
        for depth in range(1, len(place.names)):
            above = "/".join(place.names[:depth])
            if files.file(self._room, place.tier, above) is not None:
                raise Answer(f"Error: {ROOT}/{above} is a file, not a directory")

    def _is_taken(self, place: Place) -> bool:
        """Whether a file or a folder has this path; a file also if it may not be shown."""
        if place.area is not Area.FILE:
            return False
        return files.file(self._room, place.tier, place.path) is not None or bool(self._under(place))

    def _file(self, place: Place) -> Entry | None:
        """The file at a place, if there is one; a refusal if it may not be shown."""
        if place.area is not Area.FILE:
            return None
        entry = files.file(self._room, place.tier, place.path)
        if entry is not None and not files.may_see(self._room, entry):
            raise Answer(f"Error: {place.given} is held until the author has looked at it, and cannot be used yet")
        return entry

    def _under(self, place: Place) -> list[Entry]:
        return [e for e in files.files(self._room, place.tier) if (e.path or "").startswith(f"{place.path}/")]

    def _at_or_under(self, place: Place) -> list[Entry]:
        entry = self._file(place)
        found = [entry] if entry is not None else self._under(place)
        if not found:
            raise Answer(f"Error: The path {place.given} does not exist")
        return found

    # Reading and writing

    def _rewrite(self, place: Place, change: Callable[[str], str], missing: str) -> Written:
        if place.area in (Area.LAYOUT, Area.UNBOUND):
            raise Answer(missing)
        self._require_file(place)
        if self._file(place) is None:
            raise Answer(missing)
        try:
            return files.rewrite(self._room, place.tier, place.path, change)
        except NotFound:
            raise Answer(missing) from None

    def _text(self, place: Place) -> str | None:
        """What is at a place, None if it is no file. Reading an entry counts, as a retrieval does."""
        if place.area is Area.PAGE:
            pages = {f"{NAMED}/{page.name}.md": page.body for page in Workspace(self._room).named()}
            return pages.get("/".join(place.names))
        entry = self._entry(place) if place.area is Area.ENTRY else self._file(place)
        if entry is None:
            return None
        self._room.store(entry.scope.tier).touch([entry.id], self._room.now)
        return entry.content

    def _entry(self, place: Place) -> Entry | None:
        try:
            entry = self._room.entry(place.names[2].removesuffix(".md"))[1]
        except (NotFound, InvalidInput):
            return None
        named = place.names == (place.tier, ENTRIES, f"{entry.id}.md")
        here = entry.scope == self._room.scope(place.tier) and VISIBILITY[entry.state] is Visibility.OPEN
        return entry if named and here and entry.path is None else None

    def _listing(self, place: Place) -> str | None:
        leaves = [
            Leaf(tuple((entry.path or "").split("/")), _bytes(entry.content))
            for tier in self._layout.bound
            for entry in files.files(self._room, tier)
        ]
        if place.area is not Area.LAYOUT and not any(leaf.names[: len(place.names)] == place.names for leaf in leaves):
            return None
        leaves += [Leaf((NAMED, f"{page.name}.md"), _bytes(page.body)) for page in Workspace(self._room).named()]
        more = []
        for tier in self._layout.bound:
            others = files.others(self._room, tier, LISTED + 1)
            leaves += [Leaf((tier, ENTRIES, f"{e.id}.md"), _bytes(e.content)) for e in others[:LISTED]]
            if len(others) > LISTED and place.names[:1] == (tier,):
                more.append(f"\nOnly the newest {LISTED} of {ROOT}/{tier}/{ENTRIES} are listed.")
        path = "/".join((ROOT, *place.names))
        return answers.listing(path, place.names, leaves, self._layout.folders()) + "".join(more)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def _remark(written: Written, text: str) -> str:
    """What a writer should know beyond success: that the text was changed, or that it is held."""
    said = ""
    if written.entry is not None and written.entry.content != text:
        said += "\nNote: the rules of this workspace changed the text before it was kept. View it before you edit it."
    if written.entry is not None and written.entry.state is State.HELD:
        gate = written.entry.gate
        reason = f" ({gate.reason})" if gate is not None and gate.reason else ""
        said += (
            f"\nNote: it is held for the author to look at{reason}. It can be viewed here and is recalled nowhere else."
        )
    return said
