"""The questions that make a spec, in a good order for answering, and the spec that the answers make.

Each answer changes a whole spec, which is built at once: an answer that makes no valid spec is refused, with the
reason, and asked again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Generator, Mapping
from copy import deepcopy
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from lukasa.model.errors import SpecError
from lukasa.model.values import Kind
from lukasa.spec import answers as to
from lukasa.spec.answers import Data
from lukasa.spec.canonical import dump
from lukasa.spec.decode import nearest
from lukasa.spec.load import build, preset_names, preset_text
from lukasa.spec.types import AUDIT_RULES, BEHAVIOURS, SIGNALS, TRANSFORMS, Primitive

UPKEEP = ("triggers", "triage", "disclosure")


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
    """A question for a person. Without `options` any text may answer it; the default is always a good one.

    `problem` says why the answer before was refused.
    """

    id: str
    step: str
    ask: str
    default: str
    options: tuple[str, ...] = ()
    problem: SpecError | None = None


Apply = Callable[[Data, str], None]
Walk = Generator[Question, str, Data]


def interview(reply: Callable[[Question], str]) -> str:
    """Ask every question, and return the commented spec. An empty reply takes the default."""
    walk = _walk()
    question = next(walk)
    while True:
        try:
            question = walk.send(reply(question))
        except StopIteration as done:
            return dump(build(done.value, file=""), _comments())


def compose(answers: Mapping[str, str] | None = None) -> str:
    """Make a commented spec of the given answers; each omitted question takes its default."""
    return _answered(answers or {})[0]


def list_questions(answers: Mapping[str, str] | None = None) -> list[Question]:
    """List the questions that are asked if these answers are given: some depend on the answers before."""
    return _answered(answers or {})[1]


def _answered(answers: Mapping[str, str]) -> tuple[str, list[Question]]:
    asked: list[Question] = []

    def reply(question: Question) -> str:
        problem = question.problem
        if problem is not None:
            raise SpecError(problem.message, key=question.id, fix=problem.fix)
        asked.append(question)
        return answers.get(question.id, "")

    text = interview(reply)
    known = [question.id for question in asked]
    for key in answers:
        if key not in known:
            meant = nearest(key, known)
            fix = f"did you mean {meant}?" if meant else f"after these answers: {', '.join(known)}"
            raise SpecError(f"no question {key[:60]!r} after these answers", key=key[:60], fix=fix)
    return text, asked


def _ask(data: Data, question: Question, apply: Apply) -> Walk:
    """Ask until the answer makes a valid spec; the default leaves the spec as it is."""
    while True:
        answer = (yield question).strip() or question.default
        if answer and answer == question.default:
            return data
        changed = deepcopy(data)
        try:
            if question.options and answer not in question.options:
                raise to.refuse(f"{answer[:60]!r} does not answer it", f"one of: {', '.join(question.options)}")
            apply(changed, answer)
            build(changed, file="")
        except SpecError as problem:
            question = replace(question, problem=problem)
        else:
            return changed


def _walk() -> Walk:
    data = _preset("default")
    data = yield from _ask(
        data,
        Question("name", "anchor", "What is this memory called? (lower-case letters, digits, - and _)", "my-agent"),
        _name,
    )
    for part in (_anchor, _typology, _tiers, _backend, _retrieval, _behaviour, _discipline, _audit, _upkeep):
        data = yield from part(data)
    return data


def _preset(name: str) -> Data:
    return tomllib.loads(preset_text(name)) | {"name": "my-agent", "title": "Memory of my-agent"}


def _name(data: Data, answer: str) -> None:
    data |= {"name": answer, "title": f"Memory of {answer}"}


def _like(data: Data, answer: str) -> None:
    about = {"name": data["name"], "title": data["title"]}
    data.clear()
    data |= _preset(answer) | about


def _anchor(data: Data) -> Walk:
    ask = "Which preset is nearest? Its values are the defaults of the questions below."
    data = yield from _ask(data, Question("like", "anchor", ask, "default", preset_names()), _like)
    ask = "Which keys scope an entry, the broadest first? Separate them by commas; a question mark makes one nullable."
    return (yield from _ask(data, Question("anchor", "anchor", ask, to.anchor_shown(data)), to.set_anchor))


def _names(data: Data) -> list[str]:
    return [tier["name"] for tier in data["tiers"]]


def _typology(data: Data) -> Walk:
    ask = "Which tiers are there, the narrowest first? Separate them by commas."
    data = yield from _ask(data, Question("tiers", "typology", ask, to.shown(_names(data))), to.set_tiers)
    for tier in _names(data):
        ask = f"Which kinds does {tier!r} hold, the main one first? ({', '.join(Kind)})"
        question = Question(f"typology.{tier}", "typology", ask, to.shown(data["typology"][tier]))
        data = yield from _ask(data, question, partial(_set_list, section="typology", key=tier))
    return data


def _tiers(data: Data) -> Walk:
    for name in _names(data):
        for about in (_keys, _lasting, _boundary, _home, _admits):
            data = yield from _ask(data, *about(data, name))
    return data


def _keys(data: Data, name: str) -> tuple[Question, Apply]:
    ask = f"Which keys scope {name!r}? A question mark makes one nullable here."
    question = Question(f"tiers.{name}.anchor", "tiers", ask, to.shown(to.tier_of(data, name)["anchor"]))
    return question, partial(_set_tier_anchor, name=name)


def _lasting(data: Data, name: str) -> tuple[Question, Apply]:
    kept = "yes" if to.tier_of(data, name)["persistent"] else "no"
    question = Question(f"tiers.{name}.persistent", "tiers", f"Does {name!r} outlive its scope?", kept, ("yes", "no"))
    return question, lambda data, answer: to.set_persistent(data, name, answer)


def _boundary(data: Data, name: str) -> tuple[Question, Apply]:
    boundary = to.tier_of(data, name)["boundary"]
    ask = f"What ends {name!r}? (lifecycle, scope or escalation, and the event)"
    question = Question(f"tiers.{name}.boundary", "tiers", ask, f"{boundary['type']} {boundary['event']}")
    return question, lambda data, answer: to.set_boundary(to.tier_of(data, name), answer)


def _home(data: Data, name: str) -> tuple[Question, Apply]:
    ask = f"Is {name!r} kept in the workspace, or in the account that all workspaces share?"
    home = to.tier_of(data, name)["home"]
    question = Question(f"tiers.{name}.home", "tiers", ask, home, ("workspace", "account"))
    return question, lambda data, answer: to.tier_of(data, name).update(home=answer)


def _admits(data: Data, name: str) -> tuple[Question, Apply]:
    ask = f"Which kinds and categories alone may be written to {name!r}? (none: everything may)"
    question = Question(f"tiers.{name}.admits", "tiers", ask, to.shown(to.tier_of(data, name).get("admits", [])))
    return question, lambda data, answer: to.tier_of(data, name).update(admits=to.listed(answer))


def _set_tier_anchor(data: Data, answer: str, name: str) -> None:
    to.tier_of(data, name)["anchor"] = to.listed(answer)


def _set_list(data: Data, answer: str, section: str, key: str) -> None:
    data[section][key] = to.listed(answer)


def _set(data: Data, answer: str, section: str, key: str) -> None:
    data[section][key] = answer


def _backend(data: Data) -> Walk:
    backend = data["backend"]
    ask = "Where is memory stored? (sqlite: in a file, or in the database of LUKASA_DATABASE if that is set)"
    question = Question("backend.store", "backend", ask, backend["store"], ("sqlite", "postgres", "memory"))
    data = yield from _ask(data, question, partial(_set, section="backend", key="store"))
    ask = "Where are the checkpoints of chats kept?"
    kept = backend.get("checkpointer", "separate-file")
    question = Question("backend.checkpointer", "backend", ask, kept, ("separate-file", "none"))
    data = yield from _ask(data, question, partial(_set, section="backend", key="checkpointer"))
    ask = "Which model makes the vectors? (auto: the local one if it is there; none: keywords; or a name or folder)"
    question = Question("backend.embedder", "backend", ask, backend.get("embedder", "auto"))
    return (yield from _ask(data, question, to.set_embedder))


def _retrieval(data: Data) -> Walk:
    ask = f"Which signals find and weigh an entry? (of {', '.join(SIGNALS)})"
    question = Question("retrieval.signals", "retrieval", ask, to.shown(data["retrieval"]["signals"]))
    data = yield from _ask(data, question, to.set_signals)
    question = Question(
        "retrieval.fusion", "retrieval", "How are they combined?", data["retrieval"]["fusion"], ("rrf", "zscore")
    )
    data = yield from _ask(data, question, partial(_set, section="retrieval", key="fusion"))
    ask = "Which tiers are ranked by recency alone?"
    question = Question("retrieval.recency_tiers", "retrieval", ask, to.shown(data["retrieval"]["recency_tiers"]))
    data = yield from _ask(data, question, partial(_set_list, section="retrieval", key="recency_tiers"))
    ask = "Does a language model order the hits as the last step?"
    question = Question("retrieval.rerank", "retrieval", ask, data["retrieval"]["rerank"], ("none", "model"))
    return (yield from _ask(data, question, partial(_set, section="retrieval", key="rerank")))


_ABOUT: dict[Primitive, str] = {
    "lifecycle": "How does the life of an entry end",
    "decay": "How does rank fall with time",
    "write": "When is something written",
    "promotion": "What makes an entry rise",
    "conflict": "What happens to an entry that a new one replaces",
    "consolidation": "How do many entries become few",
    "injection": "How does a tier enter the prompt",
}


def _behaviour(data: Data) -> Walk:
    for primitive in BEHAVIOURS:
        data = yield from _primitive(data, primitive)
    return data


def _primitive(data: Data, primitive: Primitive) -> Walk:
    """Ask where a primitive deviates, then for the values and the reason of each place."""
    here, id = to.behaviour_shown(data, primitive), f"behaviour.{primitive}"
    ask = (
        f"{_ABOUT[primitive]}? ({to.TYPOLOGY}: as the kind says; "
        + (f"{to.KEEP}: as the preset says; " if here == to.KEEP else "")
        + "or where it deviates: all, tiers, kinds, TIER.KIND)"
    )
    asked = ""

    def remember(changed: Data, answer: str) -> None:
        nonlocal asked
        to.set_places(changed, primitive, answer)
        asked = answer

    data = yield from _ask(data, Question(id, "behaviour", ask, here), remember)
    for place in to.places(data, asked or here):
        data = yield from _deviation(data, primitive, place)
    return data


def _deviation(data: Data, primitive: Primitive, place: str) -> Walk:
    id, usual = f"behaviour.{primitive}.{place}", to.default_shown(data, primitive, place)
    ask = f"{primitive.capitalize()} of {place}: which values change? (KEY = VALUE, KEY = VALUE)"
    before = data
    data = yield from _ask(
        data,
        Question(id, "behaviour", ask, usual),
        lambda changed, answer: to.set_deviation(changed, primitive, place, answer),
    )
    if data is before:
        return data
    return (
        yield from _ask(
            data,
            Question(f"{id}.reason", "behaviour", "Why? (the spec keeps the reason)", ""),
            lambda changed, answer: to.table(changed, primitive, place).update(reason=answer),
        )
    )


def _discipline(data: Data) -> Walk:
    only = data["reference_only"]
    ask = "What must it only reference, never copy? (collections, separated by commas; or none)"
    question = Question("reference_only.non_mirror", "reference_only", ask, to.shown(only["non_mirror"]))
    data = yield from _ask(data, question, partial(_set_list, section="reference_only", key="non_mirror"))
    ask = "Is a copy of these refused (primary), or held and flagged (backstop)?"
    options = ("primary", "backstop")
    question = Question("reference_only.calibration", "reference_only", ask, only["calibration"], options)
    data = yield from _ask(data, question, partial(_set, section="reference_only", key="calibration"))
    ask = (
        "Which text is changed when it crosses a boundary (tenant, context or trust)? BOUNDARY into TIER: TRANSFORM; "
        f"or BOUNDARY to SURFACE: TRANSFORM, gates apart by semicolons (transforms: {', '.join(TRANSFORMS)}); or none"
    )
    data = yield from _ask(data, Question("sanitization", "reference_only", ask, to.gates_shown(data)), to.set_gates)
    for tier in _names(data):
        access, id = data["visibility"][tier], f"visibility.{tier}"
        agents, clients = ("shared", "participants", "owner"), ("closed", "granted", "participants")
        question = Question(f"{id}.agents", "reference_only", f"Which agents read {tier!r}?", access["agents"], agents)
        data = yield from _ask(data, question, partial(_set_access, tier=tier, key="agents"))
        ask = f"Which clients from outside read {tier!r}?"
        question = Question(f"{id}.external", "reference_only", ask, access["external"], clients)
        data = yield from _ask(data, question, partial(_set_access, tier=tier, key="external"))
    return data


def _set_access(data: Data, answer: str, tier: str, key: str) -> None:
    data["visibility"][tier][key] = answer


def _audit(data: Data) -> Walk:
    ask = f"The universal posture holds. Which of its rules does not apply? (none, or of {', '.join(AUDIT_RULES)})"
    data = yield from _ask(data, Question("audit.exemptions", "audit", ask, to.exempted(data)), to.set_exemptions)
    for n, item in enumerate(data.get("audit", {}).get("exemptions", [])):
        question = Question(f"audit.exemptions.{item['rule']}", "audit", f"Why not {item['rule']}?", "")
        data = yield from _ask(data, question, partial(_set_reason, n=n))
    return data


def _set_reason(data: Data, answer: str, n: int) -> None:
    data["audit"]["exemptions"][n]["reason"] = answer


def _upkeep(data: Data) -> Walk:
    shown = str(data.get("triggers", {}).get("queue_depth", 20))
    ask = "How many new entries start a consolidation?"
    return (yield from _ask(data, Question("triggers.queue_depth", "upkeep", ask, shown), _set_depth))


def _set_depth(data: Data, answer: str) -> None:
    data.setdefault("triggers", {})["queue_depth"] = to.whole(answer)


def _comments() -> dict[str, str]:
    return {step.section: f"{n}. {step.title}. {step.question}" for n, step in enumerate(WALK, 1)} | {
        "reading": "How much a read returns and how much enters the prompt.",
        "named": "Named pages, always loaded in full; only their author edits them.",
    }
