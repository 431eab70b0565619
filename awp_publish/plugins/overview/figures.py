"""Figures of traffic: calls, their outcomes, and within how many milliseconds they were answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from awp_publish.http.html import Html, tag
from awp_publish.plugins.overview.markup import NO_FIGURE, code, fill, table
from awp_publish.plugins.overview.view import Traffic
from awp_publish.plugins.traffic.charts import (
    KINDS,
    kind_of,
    traffic_breakdowns,
    traffic_svg,
    traffic_table,
    written_time,
)
from awp_publish.plugins.traffic.record import BOUNDS, JOB, PAGES, TrafficReport, quantile

DAYS: Final = 30
_LEGEND: Final = {
    "ok": "answered",
    "asked": "asked for confirmation",
    "refused": "refused",
    "failed": "failed",
}


@dataclass(slots=True)
class Figures:
    """The calls of an action, or of all. `buckets` are those of their durations (`traffic.record.BOUNDS`)."""

    kinds: dict[str, int]
    buckets: list[int]

    @classmethod
    def empty(cls) -> "Figures":
        return cls({kind: 0 for kind, _ in KINDS}, [0] * (len(BOUNDS) + 1))

    @property
    def calls(self) -> int:
        return sum(self.kinds.values())

    @property
    def errors(self) -> int:
        """Calls that were refused or failed; a question to a person is neither."""
        return self.kinds["refused"] + self.kinds["failed"]

    @property
    def p95(self) -> float | None:
        """Milliseconds within which 95 % of the calls were answered, None without measurements."""
        return quantile(self.buckets, 0.95) if any(self.buckets) else None

    def share(self, kind: str) -> str:
        """Return a kind's share of the calls as text, with the digits that mean something."""
        return percent(self.kinds[kind], self.calls)


def percent(part: int, whole: int) -> str:
    """Return a share: "0 %", "<0.1 %", "2.3 %", "41 %"."""
    if not part or not whole:
        return "0 %"
    share = 100 * part / whole
    if share < 0.1:
        return "<0.1 %"
    return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def figures_by_action(report: TrafficReport) -> Mapping[str, Figures]:
    """Return the figures of each action that was called, without its jobs and without readings of pages."""
    found: dict[str, Figures] = {}
    for row in report.rows:
        if row.door not in PAGES and row.door != JOB:
            own = found.setdefault(row.action, Figures.empty())
            own.kinds[kind_of(row.outcome)] += row.calls
    for (_, door, action), counted in report.latencies.items():
        if door not in PAGES and door != JOB and action in found:
            own = found[action]
            own.buckets = [mine + its for mine, its in zip(own.buckets, counted, strict=True)]
    return found


def total(all_figures: Mapping[str, Figures]) -> Figures:
    """Return the figures of all actions together."""
    whole = Figures.empty()
    for own in all_figures.values():
        for kind, count in own.kinds.items():
            whole.kinds[kind] += count
        whole.buckets = [mine + its for mine, its in zip(whole.buckets, own.buckets, strict=True)]
    return whole


def calls_on(report: TrafficReport, day: str) -> int:
    """Return the calls of one day, without jobs and readings of pages."""
    return sum(row.calls for row in report.rows if row.day == day and row.door not in PAGES and row.door != JOB)


def of_action(report: TrafficReport, action_id: str) -> TrafficReport:
    """Return the report of one action."""
    rows = tuple(row for row in report.rows if row.action == action_id and row.door not in PAGES)
    latencies = {
        key: counted for key, counted in report.latencies.items() if key[2] == action_id and key[1] not in PAGES
    }
    return replace(report, rows=rows, latencies=latencies)


def month(report: TrafficReport, title: str = "Calls and page reads", height: int = 220) -> Html:
    """Return the days as a chart with a legend."""
    legend = [tag("li", tag("i", class_=f"swatch {kind}", aria_hidden="true"), _LEGEND[kind]) for kind, _ in KINDS]
    picture = Html(traffic_svg(report, height=height, legend=False))
    return fill("month", title=title, picture=picture, legend=legend, days=len(report.days))


def p95_of(own: Figures) -> str:
    """Return the 95th percentile as text, NO_FIGURE without measurements."""
    return NO_FIGURE if (time := own.p95) is None else written_time(time)


def tiles(pairs: Sequence[tuple[object, ...]]) -> Html:
    """Return figures with their labels, each with a note below: (label, figure, note)."""
    return tag(
        "dl", [fill("tile", label=label, figure=figure, note=note) for label, figure, note in pairs], class_="tiles"
    )


def outcome_tiles(own: Figures) -> list[tuple[object, ...]]:
    """Return the figures that every page with traffic shows: outcomes and durations."""
    shares = (
        tag("span", own.share("refused"), tag("small", " refused")),
        tag("span", own.share("failed"), tag("small", " failed")),
    )
    asked = f"{own.kinds['asked']:,} asked a person first" if own.kinds["asked"] else f"of {own.calls:,} in {DAYS} days"
    return [
        ("Refused and failed", shares, asked),
        ("95 % answered within", p95_of(own), f"in the last {DAYS} days"),
    ]


def traffic_section(traffic: Traffic, *, with_callers: bool) -> Html:
    """Return who came: calls by door, action, page, caller and outcome, and the figures of each day."""
    if isinstance(traffic, str):
        return tag("p", traffic, class_="error")
    if traffic is None or not traffic.rows:
        return tag("p", f"No calls and no page reads in {DAYS} days.", class_="none")
    breakdowns = [
        table(one.caption, one.heads, ((code(line[0]), *line[1:]) for line in one.rows), class_="numbers")
        for one in traffic_breakdowns(traffic, with_callers=with_callers)
        if one.heads[:2] != ("action", "ok")  # these stand in the table of actions
    ]
    return fill("traffic", days=DAYS, by_day=Html(traffic_table(traffic)), tables=breakdowns)


def action_section(traffic: Traffic, action_id: str) -> Html | None:
    """Return the traffic of one action, None if no traffic is kept."""
    if traffic is None:
        return None
    if isinstance(traffic, str):
        return tag("p", traffic, class_="error")
    report = of_action(traffic, action_id)
    own = figures_by_action(report).get(action_id)
    if own is None:
        return tag("p", f"Not called in {DAYS} days.", class_="none")
    heads = [("Calls", f"{own.calls:,}", f"in {DAYS} days"), *outcome_tiles(own)]
    codes = report.sum_by("outcome", "door", only=lambda row: row.outcome != "ok" and row.door != JOB)
    rows = [(code(outcome), door, f"{count:,}") for (outcome, door), count in list(codes.items())[:20]]
    reasons = table("Reasons of refusals, questions and failures", ("code", "door", "calls"), rows, class_="numbers")
    return fill("own_traffic", tiles=tiles(heads), month=month(report, "Calls"), reasons=reasons if rows else None)
