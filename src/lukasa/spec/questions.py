"""The questions that make a spec, in a good order for answering, and the spec that the answers make."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec.canonical import dump
from lukasa.spec.decode import nearest
from lukasa.spec.load import build, preset_text
from lukasa.spec.types import BEHAVIOURS

KEEP = "keep"
UPKEEP = ("triggers", "triage")


class WalkStep(Struct, frozen=True):
    """One step of the walk: a question, and the primitives that answer it."""

    section: str
    title: str
    question: str
    primitives: tuple[str, ...]


WALK = (
    WalkStep(
        "anchor", "Anchor", "Which keys say whose memory this is? Everything else follows from them.", ("anchor",)
    ),
    WalkStep("typology", "Typology", "Which kinds of memory does each tier hold?", ("typology",)),
    WalkStep("tiers", "Tiers", "Which tiers are there, and what ends each of them?", ("tiers",)),
    WalkStep("backend", "Backend", "Where is memory stored, and which model makes its vectors?", ("backend",)),
    WalkStep("retrieval", "Retrieval", "Which signals find a memory, and how are they combined?", ("retrieval",)),
    WalkStep("behaviour", "Behaviour", "Where does it differ from the defaults of its kinds, and why?", BEHAVIOURS),
    WalkStep(
        "reference_only",
        "Discipline",
        "What must it never copy, which text is changed on the way in or out, and who may read?",
        ("reference_only", "sanitization", "visibility"),
    ),
    WalkStep("audit", "Audit", "Does the universal posture hold? An exemption needs a reason.", ("audit",)),
    WalkStep("upkeep", "Upkeep", "When does background work begin, and what does it decide alone?", UPKEEP),
)


class Question(Struct, frozen=True):
    """A question for a person. Without `options` any text is an answer; the default is always a good one."""

    id: str
    step: str
    ask: str
    default: str
    options: tuple[str, ...] = ()


QUESTIONS = (
    Question("name", "anchor", "What is this memory called? (lower-case letters, digits, - and _)", "my-agent"),
    Question(
        "anchor",
        "anchor",
        "Whose memory is it: a person's (account, workspace, …) or a tenant's (organisation, domain)?",
        "person",
        ("person", "tenant"),
    ),
    Question(
        "typology",
        "typology",
        "Which kinds belong in its broadest tier? (episodic, semantic, procedural; or keep)",
        KEEP,
    ),
    Question("tiers", "tiers", "Which tiers, by name, separated by commas? (or keep: all of them)", KEEP),
    Question("store", "backend", "Where is it kept?", "sqlite", ("sqlite", "memory")),
    Question("embedder", "backend", "Which embedding model? (auto: the local one if present; none: keywords)", "auto"),
    Question("fusion", "retrieval", "How are words and meaning combined?", KEEP, (KEEP, "zscore", "rrf")),
    Question(
        "forgetting",
        "behaviour",
        "How fast does an entry fade that nobody reads?",
        KEEP,
        (KEEP, "typology", "gentle", "fast", "never"),
    ),
    Question("forgetting_reason", "behaviour", "Why? (kept in the spec)", ""),
    Question("writing", "behaviour", "When is something written?", KEEP, (KEEP, "typology", "explicit", "auto")),
    Question("writing_reason", "behaviour", "Why? (kept in the spec)", ""),
    Question("non_mirror", "reference_only", "What must it only reference, never copy? (separated by commas)", KEEP),
    Question(
        "calibration",
        "reference_only",
        "Is a copy of these refused (primary), or held and flagged (backstop)?",
        KEEP,
        (KEEP, "primary", "backstop"),
    ),
    Question(
        "external", "reference_only", "May outside clients read persistent tiers?", KEEP, (KEEP, "closed", "granted")
    ),
    Question("audit", "audit", "The audit posture: no persistent entry is removed.", "universal", ("universal",)),
    Question("queue_depth", "upkeep", "How many new entries start a consolidation? (a number; or keep)", KEEP),
)

_Data = dict[str, Any]


def compose(answers: Mapping[str, str] | None = None) -> str:
    """Make a commented spec of the given answers; each omitted question takes its default."""
    given = _checked(answers or {})
    data: _Data = tomllib.loads(preset_text("anchored" if given["anchor"] == "tenant" else "default"))
    data["name"] = given["name"]
    data["title"] = f"Memory of {given['name']}"
    data["backend"] |= {"store": given["store"], "embedder": given["embedder"]}
    for apply in (_tiers, _typology, _retrieval, _forgetting, _writing, _discipline, _upkeep):
        apply(data, given)
    return dump(build(data, file="answers"), _comments())


def _checked(answers: Mapping[str, str]) -> dict[str, str]:
    known = {question.id: question for question in QUESTIONS}
    for key, value in answers.items():
        if key not in known:
            meant = nearest(key, known)
            raise SpecError(
                f"no question {key[:60]!r}", key=key[:60], fix=f"did you mean {meant}?" if meant else ", ".join(known)
            )
        options = known[key].options
        if options and value not in options:
            raise SpecError(f"{value[:60]!r} does not answer it", key=key, fix=f"one of: {', '.join(options)}")
    return {question.id: answers.get(question.id, "").strip() or question.default for question in QUESTIONS}


def _listed(answer: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in answer.split(",") if part.strip()))


def _tiers(data: _Data, given: dict[str, str]) -> None:
    """Remove the tiers that the answer leaves out, everywhere they are mentioned."""
    if given["tiers"] == KEEP:
        return
    wanted, known = _listed(given["tiers"]), [tier["name"] for tier in data["tiers"]]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise SpecError(f"no tier {', '.join(unknown)[:60]!r}", key="tiers", fix=f"some of: {', '.join(known)}")
    gone = [name for name in known if name not in wanted]
    data["tiers"] = [tier for tier in data["tiers"] if tier["name"] in wanted]
    data["retrieval"]["recency_tiers"] = [n for n in data["retrieval"].get("recency_tiers", []) if n in wanted]
    data["named"] = [entry for entry in data["named"] if entry["tier"] in wanted]
    if isinstance(data["sanitization"], list):
        data["sanitization"] = [gate for gate in data["sanitization"] if gate.get("into", "") not in gone]
    for name in gone:
        for table in (data["typology"], data["visibility"], *data.get("behaviour", {}).values()):
            table.pop(name, None)


def _typology(data: _Data, given: dict[str, str]) -> None:
    if given["typology"] != KEEP:
        kinds = _listed(given["typology"])
        data["typology"][data["tiers"][-1]["name"]] = [kind for kind in Kind if kind in kinds] or kinds


def _retrieval(data: _Data, given: dict[str, str]) -> None:
    if given["fusion"] != KEEP:
        data["retrieval"]["fusion"] = given["fusion"]
    if given["embedder"] == "none":
        data["retrieval"]["signals"] = [name for name in data["retrieval"]["signals"] if name != "vector"]
        data["retrieval"].get("weights", {}).pop("vector", None)


_FORGETTING: dict[str, _Data] = {
    "gentle": {"model": "hourly", "rate": 0.9995, "reason": "An entry not read for two months should count half."},
    "fast": {"model": "hourly", "rate": 0.995, "reason": "An entry not read for a week should count less than half."},
    "never": {"model": "none", "reason": "Age says nothing about what this agent remembers."},
}
_WRITING: dict[str, _Data] = {
    "explicit": {"mode": "explicit", "confidence": 0.0, "reason": "Nothing is stored without a decision to store it."},
    "auto": {"mode": "auto", "confidence": 0.0, "reason": "The agent's observations are stored; the gate sorts them."},
}


def _forgetting(data: _Data, given: dict[str, str]) -> None:
    _replace(data, "decay", given["forgetting"], given["forgetting_reason"], _FORGETTING)


def _writing(data: _Data, given: dict[str, str]) -> None:
    _replace(data, "write", given["writing"], given["writing_reason"], _WRITING)


def _replace(data: _Data, primitive: str, answer: str, reason: str, values: Mapping[str, _Data]) -> None:
    if answer == KEEP:
        return
    behaviour = data.setdefault("behaviour", {})
    behaviour.pop(primitive, None)
    if answer in values:
        behaviour[primitive] = values[answer] | ({"reason": reason} if reason else {})
        if primitive == "decay":
            behaviour[primitive] |= {"procedural": {"model": "exempt"}}


def _discipline(data: _Data, given: dict[str, str]) -> None:
    if given["non_mirror"] != KEEP:
        data["reference_only"]["non_mirror"] = _listed(given["non_mirror"])
    if given["calibration"] != KEEP:
        data["reference_only"]["calibration"] = given["calibration"]
    if given["external"] != KEEP:
        for tier in data["tiers"]:
            if tier["persistent"]:
                data["visibility"][tier["name"]]["external"] = given["external"]


def _upkeep(data: _Data, given: dict[str, str]) -> None:
    if given["queue_depth"] == KEEP:
        return
    if not given["queue_depth"].isdecimal():
        raise SpecError(
            f"{given['queue_depth'][:60]!r} is not a number", key="queue_depth", fix="a whole number, as 20"
        )
    data["triggers"] = {"queue_depth": int(given["queue_depth"][:20])}


def _comments() -> dict[str, str]:
    return {step.section: f"{n}. {step.title}. {step.question}" for n, step in enumerate(WALK, 1)} | {
        "reading": "How much a read returns and how much enters the prompt.",
        "named": "Named pages, always loaded in full; only their author edits them.",
    }
