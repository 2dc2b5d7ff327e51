"""CrewAI: real crews with a model of our own. It has an environment of its own: it needs older packages than others."""

from __future__ import annotations

from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from pydantic import PrivateAttr

from lukasa import Lukasa, LukasaError, Workspace
from lukasa.frameworks import CrewAIMemory

MENU = "The guest Nora is allergic to peanuts."
ASKED = "Plan a dessert for Nora."


class Scripted(BaseLLM):
    """A model that notes what it is asked, and always gives one answer."""

    _prompts: list[str] = PrivateAttr(default_factory=list)
    _answer: str = PrivateAttr(default="")

    def __init__(self, answer: str) -> None:
        super().__init__(model="scripted")
        self._answer = answer

    def call(self, messages: Any, *given: Any, **more: Any) -> Any:
        self._prompts.append(str(messages))
        return f"Thought: I know it.\nFinal Answer: {self._answer}"


def run(world: Workspace, task: str, answer: str) -> list[str]:
    """One session: a crew of one agent with one task. Returns what its model was asked."""
    model = Scripted(answer)
    cook = Agent(role="Cook", goal="Cook well", backstory="A cook.", llm=model)
    job = Task(description=task, expected_output="a sentence", agent=cook)
    Crew(agents=[cook], tasks=[job], memory=CrewAIMemory(world)).kickoff()
    return model._prompts


def test_the_second_session_knows_what_the_first_was_told(world: Workspace) -> None:
    """Frameworks: the task of another crew holds what the first was told, and its result; no model was asked for it."""
    first = run(world, MENU, "We serve plum cake for dessert.")
    assert len(first) == 1
    assert "Relevant memories" not in first[0]
    second = run(world, ASKED, "Plum cake.")
    assert len(second) == 1
    assert MENU in second[0]
    assert "We serve plum cake for dessert." in second[0]


def test_what_a_crew_keeps_is_an_agents(world: Workspace) -> None:
    """Frameworks: nothing that a crew saves has the user's authority."""
    run(world, MENU, "We serve plum cake for dessert.")
    hits = list(world.read("peanuts plum cake", limit=20))
    assert len(hits) >= 2
    assert {str(hit.authority) for hit in hits} == {"inform"}


def test_an_agent_alone_remembers_too(world: Workspace) -> None:
    """Frameworks: an agent without a crew has the same memory."""
    first = Agent(role="Cook", goal="Cook", backstory="A cook.", llm=Scripted("Noted."), memory=CrewAIMemory(world))
    first.kickoff(MENU)
    model = Scripted("Plum cake.")
    Agent(role="Cook", goal="Cook", backstory="A cook.", llm=model, memory=CrewAIMemory(world)).kickoff(ASKED)
    assert MENU in model._prompts[0]


def test_users_do_not_mix(memory: Lukasa) -> None:
    """Frameworks: memory is one user's; a crew for another user finds nothing of it."""
    run(memory.workspace("ada"), MENU, "Noted.")
    assert MENU not in run(memory.workspace("bob"), ASKED, "Plum cake.")[0]


def test_scopes_ids_and_read_only(world: Workspace) -> None:
    """Frameworks: a scope bounds a recall, an id forgets, and a memory that is read-only writes nothing."""
    memory = CrewAIMemory(world)
    kept = memory.remember("The oven is in the cellar", scope="/house", categories=["tools"], importance=0.9)
    memory.remember("The oven of the neighbour is older", scope="/street")
    assert kept is not None
    assert [m.record.content for m in memory.recall("oven", scope="/house")] == ["The oven is in the cellar"]
    assert [m.record.scope for m in memory.recall("oven", categories=["tools"])] == ["/house"]
    assert memory.scope("/street").recall("oven")[0].record.content == "The oven of the neighbour is older"
    assert memory.forget(record_ids=[kept.id]) == 1
    assert memory.recall("oven", scope="/house") == []
    assert CrewAIMemory(world, read_only=True).remember("The roof is new this year") is None
    assert not world.read("roof")


def test_what_lukasa_does_not_have_is_refused(memory: Lukasa, world: Workspace) -> None:
    """Frameworks: nothing is lost in silence: private records, deletion by scope, storage, closed memory."""
    crew = CrewAIMemory(world)
    for call in (
        lambda: crew.remember("The code is in the blue box", private=True),
        lambda: crew.forget(scope="/house"),
        lambda: crew.reset(),
        lambda: crew.list_records(),
    ):
        with pytest.raises(LukasaError) as refusal:
            call()
        assert refusal.value.fix
    memory.close()
    with pytest.raises(LukasaError):
        crew.recall("oven")
