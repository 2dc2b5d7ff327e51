"""Read a TOML file into a MemorySpec, or list everything that is wrong with it."""

from __future__ import annotations

import hashlib
import tomllib
from functools import lru_cache
from pathlib import Path

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec.behaviours import resolve
from lukasa.spec.decode import Problems, TomlTable, literal, nearest
from lukasa.spec.sections import (
    read_anchor,
    read_audit,
    read_backend,
    read_disclosure,
    read_named,
    read_profiles,
    read_reference_only,
    read_retrieval,
    read_sanitization,
    read_tiers,
    read_triage,
    read_triggers,
    read_visibility,
)
from lukasa.spec.taxonomy import load_taxonomy, taxonomy_names
from lukasa.spec.types import KEPT, DecayModel, MemorySpec

_PRESETS = Path(__file__).parent / "presets"

FOUNDATIONAL = {
    "anchor": ("anchor entity", '[anchor]\nkeys = { account = "required", workspace = "required" }'),
    "typology": ("memory typology", '[typology]\nworkspace = ["semantic", "procedural"]'),
    "tiers": ("tier model", '[[tiers]]\nname = "workspace"\nanchor = ["workspace"]'),
    "backend": ("persistence backend", '[backend]\nstore = "sqlite"'),
    "retrieval": ("retrieval model", '[retrieval]\nsignals = ["keyword", "vector"]\nfusion = "zscore"'),
}
DISCIPLINE = {
    "reference_only": ("reference-only list is", '[reference_only]\nnon_mirror = []\ncalibration = "primary"'),
    "sanitization": ("list of sanitization gates is", "sanitization = [] # at the top of the file, if there are none"),
    "visibility": ("visibility of each tier is", '[visibility.workspace]\nagents = "shared"\nexternal = "closed"'),
}


def load_spec(path: str | Path) -> MemorySpec:
    """Read a spec from a file. Raises SpecError, also if the file cannot be read."""
    file = str(path)
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read: {error}", file=file, fix="give the path of a UTF-8 TOML file") from error
    return parse_spec(text, file=file)


def parse_spec(text: str, file: str = "spec") -> MemorySpec:
    """Read a spec from a text. Raises the first problem as a SpecError, with the others in its `others`."""
    spec, found = _read(text, file)
    if spec is None:
        raise _first(found)
    return spec


def check(text: str, file: str = "spec") -> list[SpecError]:
    """List everything that is wrong with a spec's text; empty if it can be used."""
    return _read(text, file)[1]


def build(data: dict[str, object], file: str = "spec") -> MemorySpec:
    """Build a spec from data that was read from TOML, or that has the same form."""
    problems = Problems(file)
    spec = decode(data, problems)
    if problems.found or spec is None:
        raise _first(problems.found)
    return spec


def preset_names() -> tuple[str, ...]:
    """The names of the shipped presets, the default first."""
    names = sorted(file.stem for file in _PRESETS.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != "default"))


def preset_text(name: str) -> str:
    """A preset as its author wrote it, with comments: a person starts from a copy of it."""
    known = preset_names()
    if name not in known:
        meant = nearest(name, known)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise SpecError(f"no preset {name[:60]!r}{hint}", fix=f"use one of: {', '.join(known)}")
    return (_PRESETS / f"{name}.toml").read_text("utf-8")


@lru_cache(maxsize=1)
def _earlier() -> dict[str, str]:
    """Return the preset that each digest in earlier.toml belongs to."""
    known = tomllib.loads(Path(__file__).with_name("earlier.toml").read_text("utf-8"))
    return {digest: name for name, digests in known.items() for digest in digests}


def up_to_date(text: str) -> str:
    """Return the spec that a workspace follows: for an unchanged preset of an earlier version, the present one.

    A text that somebody has changed stays as it is.
    """
    name = _earlier().get(hashlib.sha256(text.encode()).hexdigest())
    return text if name is None else preset_text(name)


@lru_cache(maxsize=16)
def load_preset(name: str = "default") -> MemorySpec:
    """Load a shipped preset. Callers share the value: treat its mappings as read-only."""
    return parse_spec(preset_text(name), file=f"preset {name}")


class InvalidSpec(SpecError):
    """The first of several problems in one file; `others` holds the rest."""

    def __init__(self, first: SpecError, others: tuple[SpecError, ...]) -> None:
        more = f" (and {len(others)} more: `lukasa spec check` lists them)" if others else ""
        super().__init__(first.message + more, fix=first.fix)
        self.file, self.key = first.file, first.key
        self.others = others

    @property
    def code(self) -> str:
        return "spec-error"


def _first(found: list[SpecError]) -> InvalidSpec:
    return InvalidSpec(found[0], tuple(found[1:]))


def _read(text: str, file: str) -> tuple[MemorySpec | None, list[SpecError]]:
    problems = Problems(file)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Not only TOMLDecodeError: a too long integer or date raises a plain ValueError.
        problems.add("", f"not valid TOML: {str(error)[:200]}", "correct the syntax at that position")
        return None, problems.found
    spec = decode(data, problems)
    return (None if problems.found else spec), problems.found


def decode(data: dict[str, object], problems: Problems) -> MemorySpec | None:
    """Decode a spec as far as possible; it may be used only if no problem was added."""
    root = TomlTable(data, "", problems)
    _present(root)
    if any(name not in root for name in FOUNDATIONAL):
        # Everything below depends on these five; more messages would only hide the important one.
        return None
    anchor = read_anchor(root)
    tiers = read_tiers(root, anchor)
    if not tiers:
        problems.add("tiers", "there is no tier to hold a memory", FOUNDATIONAL["tiers"][1])
        return None
    names = tuple(dict.fromkeys(tier.name for tier in tiers if tier.name))
    behaviours, choices = resolve(root.table("behaviour"), tiers)
    context, curated, taxonomy = root.table("context"), root.table("curated"), root.table("taxonomy")
    spec = MemorySpec(
        name=root.name("name", example="my-agent"),
        title=root.text("title", "", blank=True),
        description=root.text("description", "", blank=True),
        anchor=anchor,
        tiers=tiers,
        backend=read_backend(root),
        retrieval=read_retrieval(root, names),
        behaviours=behaviours,
        choices=choices,
        reference_only=read_reference_only(root),
        sanitization=read_sanitization(root, names),
        visibility=read_visibility(root, names),
        audit_exemptions=read_audit(root),
        profiles=read_profiles(root),
        inject_cap=context.whole("inject_cap", 10, low=1),
        standing_importance=context.number("standing_importance", 0.8, high=1.0),
        context_budget=context.whole("budget", 2000, low=1),
        named=read_named(root, tiers),
        triggers=read_triggers(root),
        triage=read_triage(root),
        disclosure=read_disclosure(root),
        taxonomy=taxonomy.choice("name", taxonomy_names(), "v1"),
        curated=curated.choice("form", ("named", "git"), "named"),
        curated_keeps=curated.choices("keep", KEPT, (), example=KEPT),
        file=problems.file,
    )
    if spec.curated_keeps and spec.curated != "git":
        curated.wrong("keep", 'needs form = "git": there is no repository otherwise', ())
    for table in (context, curated, taxonomy, root):
        table.close()
    cross_check(spec, problems)
    return spec


def _present(root: TomlTable) -> None:
    for key, (title, example) in FOUNDATIONAL.items():
        if key not in root:
            root.problems.add(key, f"the {title} is missing: a foundational primitive is always explicit", example)
    for key, (title, example) in DISCIPLINE.items():
        if key not in root:
            root.problems.add(key, f"the {title} missing: a discipline primitive is always explicit", example)


# Keys that name something inside one workspace; all workspaces share the account's store.
INSIDE_WORKSPACE = frozenset({"workspace", "channel", "conversation", "session", "thread"})


def cross_check(spec: MemorySpec, problems: Problems) -> None:
    for one in (_tiers, _admitted, _homes, _promotions, _decays, _maintenance, _signals):
        one(spec, problems)


def _tiers(spec: MemorySpec, problems: Problems) -> None:
    names = [tier.name for tier in spec.tiers]
    for n, name in enumerate(names, 1):
        if name and name in names[: n - 1]:
            problems.add(f"tiers[{n}].name", f"{name!r} is named twice", f'write: name = "{name}-2"')
    if not any(tier.persistent for tier in spec.tiers):
        problems.add(
            f"tiers[{len(names)}].persistent",
            "no tier is persistent: nothing would outlive its scope",
            "write: persistent = true",
        )


def _admitted(spec: MemorySpec, problems: Problems) -> None:
    if not any(tier.admits for tier in spec.tiers):
        return
    known = [*(kind.value for kind in Kind), *(concept.id for concept in load_taxonomy(spec.taxonomy).concepts)]
    for n, tier in enumerate(spec.tiers, 1):
        for word in tier.admits:
            if word not in known:
                fix = f"write: admits = {literal([nearest(word, known) or known[0]])}; known are {', '.join(known)}"
                problems.add(f"tiers[{n}].admits", f"{word[:60]!r} is neither a kind nor a category", fix)


def _homes(spec: MemorySpec, problems: Problems) -> None:
    seen_account = False
    for n, tier in enumerate(spec.tiers, 1):
        if tier.home == "account":
            seen_account = True
            inside = [key.name for key in tier.anchor if key.name in INSIDE_WORKSPACE]
            if inside:
                problems.add(
                    f"tiers[{n}].anchor",
                    f"a tier at home in the account cannot be scoped by {', '.join(inside)}, which a workspace holds",
                    'write: anchor = ["account"], or home = "workspace"',
                )
        elif seen_account:
            problems.add(
                f"tiers[{n}]",
                f"{tier.name!r} comes after an account tier; tiers go from the narrowest to the broadest",
                f"move [[tiers]] {tier.name} before the account tier",
            )


def _promotions(spec: MemorySpec, problems: Problems) -> None:
    order = [tier.name for tier in spec.tiers]
    for (tier, kind), behaviour in spec.behaviours.items():
        to = behaviour.promotion.to
        key = f"behaviour.promotion.{tier}.{kind.value}.to"
        allowed = order[order.index(tier) :]
        if to and to not in order:
            problems.add(key, f"unknown tier {to[:60]!r}", f'write: to = "next", or one of {", ".join(allowed)}')
        elif to and to not in allowed:
            problems.add(
                key, f"{to!r} is narrower than {tier!r}: promotion rises", f"write: to = {literal(allowed[-1])}"
            )


def _decays(spec: MemorySpec, problems: Problems) -> None:
    for (tier, kind), behaviour in spec.behaviours.items():
        decay = behaviour.decay
        if decay.model is DecayModel.VALIDITY and decay.window_days <= 0:
            problems.add(
                f"behaviour.decay.{tier}.{kind.value}.window_days",
                "the validity window has no length",
                "write: window_days = 90.0",
            )


def _maintenance(spec: MemorySpec, problems: Problems) -> None:
    for (tier, kind), behaviour in spec.behaviours.items():
        stale, forget = behaviour.consolidation.stale_after_days, behaviour.consolidation.forget_after_days
        if forget and not 0 < stale <= forget:
            problems.add(
                f"behaviour.consolidation.{tier}.{kind.value}.forget_after_days",
                "an entry is forgotten only after it has been stale",
                f"write: stale_after_days = {forget / 2}",
            )


def _signals(spec: MemorySpec, problems: Problems) -> None:
    if spec.backend.embedder == "none" and spec.retrieval.signals == ("vector",):
        problems.add(
            "retrieval.signals",
            "only vectors are searched, and there is no embedder to make them",
            'write under [retrieval]: signals = ["keyword", "vector"]',
        )
