"""How near in meaning a memory must be for the responder without a model to quote it: a labelled set, over thresholds.

    python -m bench.offline

Facts are put into one workspace; each question is asked of all of them, as `lukasa chat` does without a provider.
A question either has one fact that answers it, mostly in other words, or none. The threshold is chosen on the questions
with an even number and told on those with an odd one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lukasa import Lukasa
from lukasa.providers.chat import offline
from lukasa.read.rank import Hit
from lukasa.surfaces.api import session_answers

FACTS = {
    "dentist": "My dentist appointment is on the third of May",
    "allergy": "I break out in hives when I eat peanuts",
    "car": "The Volvo needs winter tyres before November",
    "landlord": "Rent goes to Mrs Okafor on the first of each month",
    "wifi": "The network password at the cabin is taped under the router",
    "deploy": "We release to production on Tuesdays after the smoke tests",
    "db": "Customer records live in Postgres, the logs in ClickHouse",
    "editor": "I write code in Helix with the gruvbox theme",
    "coffee": "I take my espresso without sugar",
    "sister": "Ingrid moved to Lisbon to study architecture",
    "dog": "Our beagle Biscuit is afraid of thunder",
    "gym": "I lift weights on Mondays and Thursdays before work",
    "book": "The novel is told by a lighthouse keeper who never speaks",
    "budget": "The kitchen renovation may cost at most nine thousand euros",
    "visa": "My passport runs out in August next year",
    "boss": "Priya signs off every invoice above a thousand",
    "tests": "Integration tests are slow because they start a real broker",
    "style": "Write commit subjects in the imperative",
    "meeting": "The team gathers every morning at half past nine",
    "garden": "The tomatoes get blight unless they are kept dry",
    "flight": "We fly home from Oslo on the twelfth in the evening",
    "knee": "I had surgery on the left knee in spring",
    "piano": "Clara practises Chopin on the upright in the hall",
    "backup": "Snapshots of the server are copied to a bucket every night",
    "licence": "All our libraries are published under Apache 2.0",
    "language": "Grandmother speaks only Finnish",
    "colour": "The bedroom walls are going to be sage green",
    "wine": "The cellar is kept at twelve degrees",
    "school": "Tom is picked up from school at three",
    "mail": "Newsletters are sent through Postmark",
}
ANSWERED = {
    "when do I have to see somebody about my teeth?": "dentist",
    "is there any food I must avoid?": "allergy",
    "what should be done to the vehicle before it snows?": "car",
    "who do I pay for the flat?": "landlord",
    "how do I get online at the holiday house?": "wifi",
    "which day of the week do new versions go live?": "deploy",
    "where is the data about clients stored?": "db",
    "what program do I use for programming?": "editor",
    "how do I like my hot drinks?": "coffee",
    "where does my sibling live now?": "sister",
    "what scares our pet?": "dog",
    "which days do I exercise?": "gym",
    "who is the narrator of my story?": "book",
    "how much can we spend on redoing the kitchen?": "budget",
    "when does my travel document expire?": "visa",
    "who approves large bills?": "boss",
    "why does the test suite take so long?": "tests",
    "how should I phrase the first line of a commit?": "style",
    "at what time is the daily standup?": "meeting",
    "what makes my vegetables sick?": "garden",
    "when do we travel back from Norway?": "flight",
    "which joint was operated on?": "knee",
    "who plays music in our house?": "piano",
    "how often are copies of the machine made?": "backup",
    "under which terms is our open source code released?": "licence",
    "which tongue does granny understand?": "language",
    "how will we paint the room we sleep in?": "colour",
    "how cold is the place where bottles are stored?": "wine",
    "when must my son be collected?": "school",
    "which service delivers our bulk email?": "mail",
    "how do I drink espresso?": "coffee",
    "what is the passport's last month?": "visa",
    "where is Ingrid studying?": "sister",
    "what is under the router?": "wifi",
}
UNANSWERED = (
    "what is the capital of Mongolia?",
    "who won the election?",
    "how tall is the office building?",
    "when is my father's birthday?",
    "what did the plumber charge?",
    "which bank has my savings?",
    "is there a pharmacy nearby?",
    "how many people follow the podcast?",
    "what is the name of my physiotherapist?",
    "which insurance covers the bicycle?",
    "when does the museum open?",
    "who wrote the theme song?",
    "what is the phone number of the hotel?",
    "how much protein do I need?",
    "where did I park?",
    "which chess opening did I prepare?",
    "what temperature does the oven need for bread?",
    "who is the mayor of Bergen?",
    "how long is the marathon I signed up for?",
    "what is my shoe size?",
    "which monitor did I order?",
    "when was the company founded?",
    "what is the speed limit on the ring road?",
    "does the printer support colour?",
    "which vaccine is due?",
    "how do I reset the thermostat?",
    "what was the score last night?",
    "who translated the poems?",
    "which stocks did I buy?",
    "when is the next solar eclipse?",
    "what is our cat called?",
    "how many languages does the app support?",
    "which queue do failed jobs go to?",
    "who reviews pull requests?",
)
STEPS = [n / 100 for n in range(2, 31)]


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the fact that answers it (empty if none does), and what memory gave for it."""

    question: str
    answer: str
    hits: Sequence[Mapping[str, Any]]
    nearness: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Told:
    """Of the questions: how many were answered right, wrong although there is an answer, and although there is none."""

    right: int
    wrong: int
    invented: int
    answerable: int

    @property
    def precision(self) -> float:
        said = self.right + self.wrong + self.invented
        return self.right / said if said else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.answerable

    @property
    def f_half(self) -> float:
        """Precision counts double: a wrong quotation is worse than none."""
        p, r = self.precision, self.recall
        return 1.25 * p * r / (0.25 * p + r) if p + r else 0.0


def nearness(hit: Hit, floor: float) -> float:
    cosine = next((c.score for c in hit.score.match.contributions if c.signal == "vector"), None)
    return 0.0 if cosine is None else (cosine - floor) / (1 - floor)


def cases() -> list[Case]:
    with tempfile.TemporaryDirectory() as folder, Lukasa.open(folder) as memory:
        world = memory.workspace()
        if world.ctx.embedder is None:
            raise SystemExit("no embedding model; `lukasa model pull` fetches it")
        floor = world.ctx.embedder.model.floor
        for fact in FACTS.values():
            world.put("workspace", fact)
        asked = [*ANSWERED.items(), *((question, "") for question in UNANSWERED)]
        found = []
        for question, answer in asked:
            hits = world.read(question, limit=session_answers.LIMIT, count=False).hits
            near = {hit.id: nearness(hit, floor) for hit in hits}
            plain = [{"id": hit.id, "content": hit.content, "tags": list(hit.entry.tags)} for hit in hits]
            found.append(Case(question, FACTS.get(answer, ""), plain, near))
        return found


def told(asked: Sequence[Case], threshold: float) -> Told:
    """What the responder would say at a threshold; what it quotes first is its answer."""
    right = wrong = invented = 0
    for case in asked:
        hits = [{**hit, "near": case.nearness[hit["id"]] >= threshold} for hit in case.hits]
        quoted = [str(hit["content"]) for hit in offline.matching(case.question, hits)]
        if not case.answer:
            invented += bool(quoted)
        elif quoted:
            right += quoted[0] == case.answer
            wrong += quoted[0] != case.answer
    return Told(right, wrong, invented, sum(bool(case.answer) for case in asked))


def main() -> None:
    every = cases()
    choosing, telling = every[::2], every[1::2]
    print(f"{len(every)} questions, {sum(bool(c.answer) for c in every)} with an answer, {len(FACTS)} facts")
    print("threshold   chosen on: precision recall F0.5    told on: precision recall F0.5   invented")
    for step in STEPS:
        a, b = told(choosing, step), told(telling, step)
        print(
            f"     {step:.2f}             {a.precision:.3f}  {a.recall:.3f} {a.f_half:.3f}"
            f"              {b.precision:.3f}  {b.recall:.3f} {b.f_half:.3f}   {a.invented + b.invented}"
        )
    best = max(STEPS, key=lambda step: (told(choosing, step).f_half, step))
    there = told(telling, best)
    print(f"chosen: {best:.2f}; on the other half: precision {there.precision:.3f}, recall {there.recall:.3f}")
    print(f"in use: {session_answers.NEAR:.2f}")


if __name__ == "__main__":
    main()
