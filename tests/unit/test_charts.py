"""Charts: SVG from values, well-formed whatever the names in them are."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from xml.etree.ElementTree import Element, fromstring

import pytest

from lukasa.model.entry import Access
from lukasa.model.telemetry import Tally
from lukasa.model.timestamps import micros
from lukasa.spec.types import Decay, DecayModel
from lukasa.surfaces.web.rendering import daily, decay_curve, durations, growth
from tests.helpers.making import make_entry

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
PAYLOAD = "</text><script>alert(1)</script>\x00\ud800 & <"
SVG = "{http://www.w3.org/2000/svg}"


def parts(svg: str, kind: str) -> list[Element]:
    return [node for node in fromstring(svg).iter() if kind in (node.get("class") or "").split()]


def heights(node: Element) -> list[float]:
    return [float(point.split(",")[1]) for point in (node.get("points") or "").split()]


def decay(model: DecayModel, rate: float = 0.995, threshold: float = 0.0) -> Decay:
    return Decay(model=model, rate=rate, window_days=30, threshold=threshold, stale_factor=0.5)


def test_a_curve_falls_from_when_the_entry_was_last_seen() -> None:
    """U5, D1: past and future of one relevance, joined at now; y grows downwards in SVG."""
    entry = make_entry(at=NOW - timedelta(days=20), importance=0.8)
    svg = decay_curve(entry, Access(3, micros(NOW - timedelta(days=10))), decay(DecayModel.HOURLY), NOW)
    (past,), (ahead,) = parts(svg, "curve"), parts(svg, "ahead")
    assert heights(past) == sorted(heights(past))
    assert heights(ahead) == sorted(heights(ahead))
    assert heights(past)[-1] == heights(ahead)[0]
    assert "2026-11-05" in svg


@pytest.mark.parametrize("model", list(DecayModel))
def test_every_model_of_decay_can_be_drawn(model: DecayModel) -> None:
    """U5, D1: also those that never fall, and an entry that was written this moment."""
    svg = decay_curve(make_entry(at=NOW), None, decay(model, threshold=0.1), NOW, NOW)
    assert fromstring(svg).tag == f"{SVG}svg"
    assert ("does not decay" in svg) is (model in (DecayModel.NONE, DecayModel.EXEMPT))
    assert bool(parts(svg, "floor")) is (model is DecayModel.FORCING)


def test_growth_has_a_line_for_each_tier() -> None:
    """U5: and a chart of one day, or of none, is still a chart."""
    days = [(date(2026, 11, day), {"workspace": day, PAYLOAD: 1}) for day in (1, 2, 3)]
    svg = growth(days)
    assert len(parts(svg, "line")) == 2
    assert "workspace 3" in (fromstring(svg).get("aria-label") or "")
    assert len(parts(growth(days[:1]), "line")) == 2
    assert "nothing yet" in growth([])


def test_bars_show_what_failed() -> None:
    """U5, T2: a bar for each day and one for its failures."""
    svg = daily([(date(2026, 11, 1), 10, 0), (date(2026, 11, 2), 4, 3)])
    assert (len(parts(svg, "column")), len(parts(svg, "bad"))) == (3, 1)
    assert "14 steps in 2 days, 3 of them failed" in svg
    assert "nothing yet" in daily([])


def test_the_slowest_step_comes_first() -> None:
    """U5, T2: mean durations, and the names of steps are data."""
    svg = durations([Tally("read", "fast", 1, 0, 1.0, 1.0), Tally(PAYLOAD, "slow", 2, 0, 50.0, 60.0)])
    widths = [float(bar.get("width") or 0) for bar in parts(svg, "column")]
    assert widths == sorted(widths, reverse=True)
    assert "50.0 ms" in svg
    assert "nothing yet" in durations([])


def test_no_name_becomes_markup() -> None:
    """T55: a payload as the name of a tier or a step stays text, and the drawing well-formed."""
    for svg in (growth([(date(2026, 11, 1), {PAYLOAD: 1})]), durations([Tally(PAYLOAD, PAYLOAD, 1, 1, 1.0, 1.0)])):
        tags = {node.tag.removeprefix(SVG) for node in fromstring(svg).iter()}
        assert tags <= {"svg", "title", "line", "polyline", "rect", "circle", "text"}
