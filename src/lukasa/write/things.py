"""Things that sync, as plain values and back: what a store holds of each kind, in the form that revisions have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import astuple

from lukasa.model.conversation import Note
from lukasa.model.corpus import DocumentSource
from lukasa.model.entry import (
    Category,
    Confirmation,
    Document,
    Entry,
    GateVerdict,
    NamedEntry,
    Scope,
    SourceLink,
    Transition,
)
from lukasa.model.events import canonical_json
from lukasa.model.ids import derived_id
from lukasa.model.item import Item, ItemAddress, namespace_of
from lukasa.model.sync import thing_of
from lukasa.model.text import content_hash
from lukasa.model.timestamps import micros, micros_or_none, moment, moment_or_none
from lukasa.model.transcript import Quote, Utterance
from lukasa.model.values import Curator, Gate, Kind, Lifetime, Origin, State, Trust
from lukasa.storage import tables
from lukasa.storage.codec import Table
from lukasa.storage.operations import ItemIndex
from lukasa.storage.port import FoundUtterance, twin_key
from lukasa.write.revisions import changed

# In this order: a thing comes behind those that it refers to.
KINDS = (
    "workspace",
    "project",
    "channel",
    "conversation",
    "note",
    "transcript",
    "utterance",
    "document",
    "page",
    "entry",
    "rival",
    "confirmation",
    "citation",
    "action",
    "closed",
    "item",
    "amendment",
)
TEXTS = frozenset({"note", "document", "page", "entry", "item"})  # kinds with a text, which forks; others have fields
FIELDS = "fields"  # the kind of the revisions of the fields of a thing that has a text
FIELDED = frozenset({"document", "entry"})  # kinds with a text and fields


class View(Struct, frozen=True):
    """What a store holds of a thing, or should hold.

    `name` is how the store finds it. `text` is what forks if two machines change it, `rest` what goes with the text,
    and `fields` are merged one by one. `hint` is needed to make the thing where it is not, and is not compared.
    """

    name: tuple[str, ...]
    text: dict[str, Any] | None = None
    rest: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    hint: dict[str, Any] = field(default_factory=dict)

    def same(self, other: View | None) -> bool:
        """Whether another one says the same, but for hints."""
        if other is None or (self.text, self.rest) != (other.text, other.rest):
            return False
        return not changed(self.fields, other.fields)


BY_ID = frozenset({"workspace", "channel", "conversation", "transcript", "entry", "citation", "amendment"})


def spot_of(kind: str, name: tuple[str, ...]) -> str:
    """Return where a thing is shown: its id, or what stands for its name. A pair is one whoever comes first."""
    if kind == "page":
        return thing_of(*name)
    return name[0] if kind in BY_ID else thing_of(kind, *(sorted(name) if kind == "rival" else name))


# Entries


def entry_view(entry: Entry) -> View:
    """Return an entry as a view. Its version is a count of this machine."""
    made = {
        "scope": [entry.scope.tier, *map(list, entry.scope.anchor)],
        "origin": [entry.origin.principal, entry.origin.surface, entry.origin.transport, int(entry.origin.trust)],
        "created_at": micros(entry.created_at),
    }
    return View((entry.id,), {"content": entry.content, "path": entry.path}, made, _entry_fields(entry))


def _entry_fields(entry: Entry) -> dict[str, Any]:
    moved, gate = entry.transition, entry.gate
    return {
        "kind": str(entry.kind),
        "lifetime": str(entry.lifetime),
        "curator": str(entry.curator),
        "source": entry.source,
        "owner": entry.owner,
        "conversation": entry.conversation,
        "importance": entry.importance,
        "trust": int(entry.trust),
        "category": None if entry.category is None else list(astuple(entry.category)),
        "merged_count": entry.merged_count,
        "updated_at": micros(entry.updated_at),
        "confirmed_at": micros(entry.confirmed_at),
        "valid_at": micros_or_none(entry.valid_at),
        "invalid_at": micros_or_none(entry.invalid_at),
        "state": [
            str(entry.state),
            entry.superseded_by,
            None if moved is None else [micros(moved.at), moved.cause, moved.actor],
            None if gate is None else [str(gate.verdict), gate.confidence, gate.reason],
        ],
        "derived_from": list(entry.derived_from),
        "evidence": [list(astuple(quote)) for quote in entry.evidence],
        "meta": entry.meta,
        **{f"tags/{tag}": True for tag in entry.tags},
        **{f"links/{_link(one)}": [one.source, one.version, one.locator, one.checked] for one in entry.links},
        **{f"metadata/{name}": value for name, value in entry.metadata.items()},
    }


def _link(link: SourceLink) -> str:
    return canonical_json([link.source, link.locator])


def _under(fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the fields below a prefix that are set, in the order of their names."""
    found = {name[len(prefix) :]: value for name, value in fields.items() if name.startswith(prefix)}
    return {name: found[name] for name in sorted(found) if found[name] not in (None, False)}


def entry_of(view: View, version: int = 1) -> Entry:
    """Return the entry that a view describes."""
    text, made, said = view.text or {}, view.rest, view.fields
    tier, *anchor = made["scope"]
    state, superseded_by, moved, gate = said["state"]
    return Entry(
        id=view.name[0],
        scope=Scope(tier, tuple((key, value) for key, value in anchor)),
        content=text["content"],
        kind=Kind(said["kind"]),
        lifetime=Lifetime(said["lifetime"]),
        curator=Curator(said["curator"]),
        source=said["source"],
        importance=said["importance"],
        origin=_origin(*made["origin"]),
        trust=Trust(said["trust"]),
        created_at=moment(made["created_at"]),
        updated_at=moment(said["updated_at"]),
        confirmed_at=moment(said["confirmed_at"]),
        owner=said["owner"],
        tags=tuple(_under(said, "tags/")),
        conversation=said["conversation"],
        category=None if said["category"] is None else Category(*said["category"]),
        gate=None if gate is None else GateVerdict(Gate(gate[0]), gate[1], gate[2]),
        merged_count=said["merged_count"],
        valid_at=moment_or_none(said["valid_at"]),
        invalid_at=moment_or_none(said["invalid_at"]),
        state=State(state),
        transition=None if moved is None else Transition(moment(moved[0]), moved[1], moved[2]),
        superseded_by=superseded_by,
        derived_from=tuple(said["derived_from"]),
        links=tuple(SourceLink(*one) for one in _under(said, "links/").values()),
        metadata=_metadata(said),
        evidence=tuple(Quote(*one) for one in said["evidence"]),
        path=text["path"],
        meta=said["meta"],
        version=version,
    )


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    prefix = "metadata/"
    found = {name[len(prefix) :]: value for name, value in fields.items() if name.startswith(prefix)}
    return {name: found[name] for name in sorted(found) if found[name] is not None}


def _origin(principal: str, surface: str, transport: str, trust: int) -> Origin:
    return Origin(principal, surface, transport, Trust(trust))


# Texts


def page_view(page: NamedEntry) -> View:
    """Return a page as a view."""
    rest = {"editor": page.editor, "edited_at": micros(page.edited_at)}
    return View((page.name,), {"tier": page.tier, "body": page.body}, rest)


def page_of(view: View) -> NamedEntry:
    """Return the page that a view describes."""
    text, rest = view.text or {}, view.rest
    return NamedEntry(view.name[0], text["tier"], text["body"], moment(rest["edited_at"]), rest["editor"])


def note_view(note: Note) -> View:
    """Return a note as a view."""
    rest = {"updated_at": micros(note.updated_at)}
    hint = {"created_at": micros(note.created_at)}
    return View((note.conversation, note.key), {"value": note.value}, rest, hint=hint)


def note_of(view: View) -> Note:
    """Return the note that a view describes."""
    updated = moment(view.rest["updated_at"])
    created = moment(view.hint.get("created_at", micros(updated)))
    return Note(view.name[0], view.name[1], (view.text or {})["value"], created, updated)


def document_view(document: Document, source: DocumentSource | None) -> View:
    """Return a document as a view. Its version is a count of this machine."""
    names = ("origin", "lifecycle", "weight", "standing", "collection")
    read = None
    if source is not None:
        read = [source.location, source.media_type, source.digest, micros(source.read_at), source.etag]
        read += [source.modified, list(source.notes)]
    fields = {name: getattr(document, name) for name in names} | {"updated_at": micros(document.updated_at)}
    text = {"title": document.title, "body": document.body, "removed": document.removed}
    return View((document.id,), text, {}, fields | {"read": read})


def document_of(view: View) -> tuple[Document, DocumentSource | None]:
    """Return the document that a view describes, and what it was read from."""
    text, said, id = view.text or {}, view.fields, view.name[0]
    about = (said["origin"], said["lifecycle"], said["weight"], said["standing"], 1, moment(said["updated_at"]))
    made = Document(id, text["title"], text["body"], *about, said["collection"], text["removed"])
    read = said.get("read")
    if read is None:
        return made, None
    location, media_type, digest, read_at, etag, modified, notes = read
    return made, DocumentSource(id, location, media_type, digest, moment(read_at), etag, modified, tuple(notes))


def item_view(item: Item, index: ItemIndex) -> View:
    """Return an item as a view."""
    rest = {
        "updated_at": micros(item.updated_at),
        "expires_at": micros_or_none(item.expires_at),
        "ttl": item.ttl,
        "texts": [list(pair) for pair in index.texts],
        "by": index.by,
    }
    name = (canonical_json(list(item.place.namespace)), item.place.key)
    return View(name, {"value": item.value}, rest, hint={"created_at": micros(item.created_at)})


def place_of(name: tuple[str, ...]) -> ItemAddress:
    """Return the address of an item by its name."""
    return ItemAddress(namespace_of(name[0]), name[1])


def item_of(view: View) -> tuple[Item, ItemIndex]:
    """Return the item that a view describes, and how it is found."""
    rest = view.rest
    updated = moment(rest["updated_at"])
    created = moment(view.hint.get("created_at", rest["updated_at"]))
    times = created, updated, moment_or_none(rest["expires_at"])
    item = Item(place_of(view.name), (view.text or {})["value"], *times, rest["ttl"])
    return item, ItemIndex(tuple((str(name), text) for name, text in rest["texts"]), rest["by"])


# Things that have fields alone: the columns of their tables, but for those that are this machine's own


class _Plain(Struct, frozen=True):
    """How a kind is in its table: the columns that name it, those that are set here, and those that are one field."""

    table: Table[Any]
    names: tuple[str, ...] = ("id",)
    local: Mapping[str, Any] = {}
    joined: Mapping[str, tuple[str, ...]] = {}


_PLAIN: Mapping[str, _Plain] = {
    "workspace": _Plain(tables.WORKSPACES, local={"ready": 0}),
    "channel": _Plain(tables.CHANNELS, local={"workspace": ""}),
    "conversation": _Plain(tables.CONVERSATIONS, joined={"status": ("status", "ended_at")}),
    "transcript": _Plain(tables.TRANSCRIPTS, local={"version": 1}),
    "utterance": _Plain(tables.UTTERANCES, ("transcript", "place"), joined={"said": ("id", "role", "at", "text")}),
    "rival": _Plain(tables.RIVALS, ("entry", "other"), joined={"judged": ("relation", "reason", "decided_by")}),
    "citation": _Plain(tables.CITATIONS),
    "closed": _Plain(tables.CLOSED_SCOPES, ("scope",), joined={"ended": ("closed_at", "event")}),
    "amendment": _Plain(
        tables.AMENDMENTS,
        local={"version": 1},
        joined={"decided": ("state", "decided_by", "reason", "line")},
    ),
}


def plain_view(kind: str, value: Any) -> View:
    """Return a value of a kind that has a table of its own as a view."""
    about = _PLAIN[kind]
    row = dict(zip(about.table.columns, about.table.encode(value), strict=True))
    name = tuple(str(row.pop(column)) for column in about.names)
    fields = {field: [row.pop(column) for column in columns] for field, columns in about.joined.items()}
    derived = [c.name for c in about.table.columns.values() if c.derive is not None]
    fields |= {column: value for column, value in row.items() if column not in (*about.local, *derived)}
    return View(name, fields=fields)


def plain_of(kind: str, view: View, **local: Any) -> Any:
    """Return the value that a view of such a kind describes. `local` has columns that are this machine's own."""
    about = _PLAIN[kind]
    row = {**about.local, **dict(zip(about.names, view.name, strict=True)), **local}
    for column, value in view.fields.items():
        joined = about.joined.get(column)
        row |= dict(zip(joined, value, strict=True)) if joined else {column: value}
    if kind == "utterance":
        row |= {"place": int(row["place"]), "text_hash": content_hash(row["text"])}
    return about.table.decode(tuple(row[column] for column in about.table.columns))


def utterance_view(transcript: str, said: Utterance) -> View:
    """Return a message of a transcript as a view."""
    return plain_view("utterance", FoundUtterance(transcript, said))


def confirmation_view(value: Confirmation) -> View:
    """Return a confirmation as a view: it never changes, so all of it is its name."""
    row = dict(zip(tables.CONFIRMATIONS.columns, tables.CONFIRMATIONS.encode(value), strict=True))
    return View((canonical_json(row),), fields={"said": row})


def confirmation_of(view: View) -> Confirmation:
    """Return the confirmation that a view describes."""
    row = view.fields["said"]
    return tables.CONFIRMATIONS.decode(tuple(row[column] for column in tables.CONFIRMATIONS.columns))


def action_view(id: str, description: str, entries: Iterable[str]) -> View:
    """Return an action with the entries that it rests on as a view."""
    return View((id,), fields={"description": description, **{f"tags/{entry}": True for entry in sorted(entries)}})


def action_entries(view: View) -> tuple[str, ...]:
    """Return the entries that the action of a view rests on."""
    return tuple(_under(view.fields, "tags/"))


def project_view(identity: str, detail: Mapping[str, Any]) -> View:
    """Return the workspace of a project as a view, without the folder that it has on this machine."""
    return View((identity,), fields={name: str(detail.get(name, "")) for name in ("workspace", "commit", "how")})


# What the revisions of a thing say, as views


def text_body(view: View) -> dict[str, Any]:
    """Return the body of a revision that has the whole text of a view, with its fields of now."""
    return {"name": list(view.name), "text": view.text, "rest": {**view.hint, **view.rest}, "fields": view.fields}


def view_of_text(kind: str, body: Mapping[str, Any], mark: str) -> View:
    """Return the view of a text; a second one of a thing gets a name of its own by its mark."""
    name, rest = tuple(body["name"]), dict(body["rest"])
    if mark:
        name = _second(kind, name, mark)
    hint = {"created_at": rest.pop("created_at")} if kind in ("note", "item") and "created_at" in rest else {}
    return View(name, body["text"], rest, dict(body["fields"]), hint)


def _second(kind: str, name: tuple[str, ...], mark: str) -> tuple[str, ...]:
    if kind == "entry":
        return (derived_id("sync", name[0], mark),)
    return (*name[:-1], f"{name[-1]} (synced {mark[:8]})")


def about_of(kind: str, name: tuple[str, ...], fields: Mapping[str, Any]) -> str:
    """Return what a thing hangs on: an entry, conversation or transcript that, removed for good, takes it along."""
    if kind in ("note", "utterance", "rival"):
        return name[0]
    if kind == "confirmation":
        return str(fields["said"]["entry"])
    return str(fields["entry"]) if kind == "citation" else ""


def with_other_name(kind: str, view: View) -> View:
    """Return a thing whose name another one has that was there first, under a name of its own."""
    column = _UNIQUE[kind]
    mark = thing_of(view.name[0])[:8]
    return View(view.name, fields={**view.fields, column: f"{view.fields[column]} (synced {mark})"})


def is_second_name(kind: str, view: View) -> bool:
    """Whether a thing has the name that it gets if another one was there first."""
    return str(view.fields[_UNIQUE[kind]]).endswith(f" (synced {thing_of(view.name[0])[:8]})")


_UNIQUE = {"workspace": "name", "channel": "name", "transcript": "key"}


def twin_of(kind: str, view: View) -> str:
    """Return the key that only one thing of a store may have; empty if there is none."""
    if kind in _UNIQUE:
        return thing_of(kind, str(view.fields[_UNIQUE[kind]]))
    if kind != "entry":
        return ""
    entry = entry_of(view)
    return thing_of("twin", canonical_json(view.rest["scope"]), entry.owner, twin_key(entry))
