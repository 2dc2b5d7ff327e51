"""A workspace of an earlier version follows the preset that it was made from, unless somebody changed the text (P5)."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.spec import load, load_preset, preset_names, preset_text
from tests.helpers.sessions import claude

EARLIER = (Path(__file__).parents[1] / "presets" / "default-earlier.toml").read_text("utf-8")
SAID = (("user", "The lighthouse keeper is called Ines Duarte."), ("assistant", "Noted."))


@pytest.mark.parametrize("changed", [False, True])
def test_a_workspace_follows_its_preset(memory: Lukasa, tmp_path: Path, changed: bool) -> None:
    """P5: what a preset of an earlier version refused to observe is observed; a text of somebody's own is kept."""
    text = EARLIER.replace("candidates = 40", "candidates = 41") if changed else EARLIER
    memory.workspace("harbour", spec=text)
    world = memory.existing("harbour")
    assert (world.ctx.spec == load_preset("default")) is not changed
    world.observe(str(claude(tmp_path / "session.jsonl", SAID)))
    memory.worker(chat="none").drain()
    found = [hit.content for hit in world.read("Who keeps the lighthouse?", held=True).hits]
    assert ("The lighthouse keeper is called Ines Duarte." in found) is not changed


def test_opening_it_with_the_preset_is_no_contradiction(memory: Lukasa) -> None:
    """P5: a program that names the preset at every start goes on working after an upgrade."""
    first = memory.workspace("harbour", spec=EARLIER)
    assert memory.workspace("harbour", preset="default").id == first.id


def test_the_presets_of_today_are_not_among_the_earlier_ones() -> None:
    """P5: the list names the shipped presets, each digest once, and none of a present text."""
    listed = tomllib.loads((Path(load.__file__).with_name("earlier.toml")).read_text("utf-8"))
    assert set(listed) <= set(preset_names())
    digests = [digest for some in listed.values() for digest in some]
    assert len(set(digests)) == len(digests)
    assert not set(digests) & {hashlib.sha256(preset_text(name).encode()).hexdigest() for name in preset_names()}
