"""Verbs for what the page shows ready-made: charts as SVG, markdown as HTML."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from pydantic import Field

from lukasa.model.errors import InvalidInput, NotFound
from lukasa.model.grant import Capability
from lukasa.model.telemetry import TelemetryQuery
from lukasa.service.admin import stats
from lukasa.service.call import CallContext
from lukasa.surfaces.api.verb import Call, Given, Told, Verb
from lukasa.surfaces.web import charts
from lukasa.surfaces.web.markdown import rendered

_LONGEST = 200_000


class ChartIn(Given):
    name: str = Field(description="decay, growth, daily or durations.")
    entry: str | None = Field(None, description="Id of the entry, for its decay.")
    days: int = Field(30, ge=1, le=3660, description="How far back, for daily and durations.")


class ChartOut(Told):
    svg: str


def chart(call: Call, given: ChartIn) -> ChartOut:
    draw = _CHARTS.get(given.name)
    if draw is None:
        raise NotFound(f"no chart {given.name[:60]!r}", fix=f"ask for one of: {', '.join(_CHARTS)}")
    return ChartOut(svg=draw(call, given))


def _decay(call: Call, given: ChartIn) -> str:
    if given.entry is None:
        raise InvalidInput("whose decay?", fix="name an entry")
    here = call.workspace
    standing = here.standing(given.entry)
    entry = standing.entry
    talk = entry.scope.value("conversation")
    closed = here.conversation(talk).ended_at if talk else None
    decay = here.spec.behaviour(entry.scope.tier, entry.kind).decay
    return charts.decay_curve(entry, standing.access, decay, here.ctx.now, closed)


def _growth(call: Call, given: ChartIn) -> str:
    survey = call.overseen(Capability.STATS).survey()
    return charts.growth([(one.day, one.counts) for one in survey.growth])


def _daily(call: Call, given: ChartIn) -> str:
    found = {t.day: t for t in stats.days(_room(call), _since(call, given))}
    if not found:
        return charts.daily([])
    first, last = date.fromisoformat(min(found)), date.fromisoformat(max(found))
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    counted = [(day, found.get(day.isoformat())) for day in days]
    return charts.daily([(day, t.count if t else 0, t.failures if t else 0) for day, t in counted])


def _durations(call: Call, given: ChartIn) -> str:
    return charts.durations(stats.work(_room(call), _since(call, given)))


def _room(call: Call) -> CallContext:
    return call.overseen(Capability.STATS).ctx


def _since(call: Call, given: ChartIn) -> TelemetryQuery:
    return TelemetryQuery(since=call.workspace.ctx.now - timedelta(days=given.days))


_CHARTS: dict[str, Callable[[Call, ChartIn], str]] = {
    "decay": _decay,
    "growth": _growth,
    "daily": _daily,
    "durations": _durations,
}


class MarkdownIn(Given):
    text: str = Field(max_length=_LONGEST)


class MarkdownOut(Told):
    html: str


def markdown(call: Call, given: MarkdownIn) -> MarkdownOut:
    return MarkdownOut(html=rendered(given.text))


VERBS = (
    Verb(
        "chart_draw",
        "Draw a chart as SVG: the decay of an entry, growth by tier, steps by day, durations of steps.",
        Capability.STATS,
        "GET",
        "/workspaces/{workspace}/charts/{name}",
        ChartIn,
        ChartOut,
        chart,
        owner_only=True,
        tool=False,
    ),
    Verb(
        "markdown_render",
        "Show how a page would look: markdown as HTML that can do nothing.",
        Capability.READ,
        "POST",
        "/markdown",
        MarkdownIn,
        MarkdownOut,
        markdown,
        owner_only=True,
        tool=False,
    ),
)
