"""B13: what is said of searches among real vectors is counted, not guessed."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from bench.nearest import FORMS, found, report, unit
from lukasa.index import ann


def test_what_is_found_is_compared_with_an_exact_product() -> None:
    dice = np.random.default_rng(2)
    texts = unit(dice.standard_normal((600, 32), dtype=np.float32))
    queries = unit(dice.standard_normal((70, 32), dtype=np.float32))
    numbers = np.arange(600)
    whole = ann.quantised_int16(numbers, numbers, texts)
    assert found(whole, queries, 10) == 1.0
    blind = replace(whole, alive=numbers % 2 == 0)  # a search that cannot see every other text
    assert 0.4 < found(blind, queries, 10) < 0.6


def test_each_form_has_its_line() -> None:
    dice = np.random.default_rng(3)
    texts = unit(dice.standard_normal((900, 200), dtype=np.float32))
    lines = report(texts, texts[:70]).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(FORMS)
    forms = [ann.projected(ann.quantised_int16(n := np.arange(900), n, texts), sizes) for sizes in FORMS.values()]
    made = [one.projection for one in forms if one.projection]
    assert [(len(one.head.columns), one.lists is not None) for one in made] == [(ann.HEAD, False), (ann.HEAD, True)]
