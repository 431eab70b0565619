"""Figures of traffic: calls, their outcomes, and within how many milliseconds they were answered."""

from collections.abc import Sequence
from typing import Final

from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import NO_FIGURE, code, fill, table
from awp_publish.plugins.overview.view import CallCounts, RecordedTraffic, Traffic

DAYS: Final = 30
_LEGEND: Final = {
    "ok": "answered",
    "asked": "asked for confirmation",
    "refused": "refused",
    "failed": "failed",
}


def percent(part: int, whole: int) -> str:
    """Return a share: "0 %", "<0.1 %", "2.3 %", "41 %"."""
    if not part or not whole:
        return "0 %"
    share = 100 * part / whole
    if share < 0.1:
        return "<0.1 %"
    return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def month(report: RecordedTraffic, title: str = "Calls and page reads") -> Html:
    """Return the days as a chart with a legend."""
    legend = [
        tag("li", tag("i", class_=f"swatch {kind}", aria_hidden="true"), words) for kind, words in _LEGEND.items()
    ]
    picture = Html(report.chart(height=220, legend=False))
    return fill("month", title=title, picture=picture, legend=legend, days=len(report.days))


def tiles(pairs: Sequence[tuple[object, ...]]) -> Html:
    """Return figures with their labels, each with a note below: (label, figure, note)."""
    return tag(
        "dl", [fill("tile", label=label, figure=figure, note=note) for label, figure, note in pairs], class_="tiles"
    )


def outcome_tiles(own: CallCounts) -> list[tuple[object, ...]]:
    """Return the figures that every page with traffic shows: outcomes and durations."""
    shares = (
        tag("span", percent(own.kinds["refused"], own.calls), tag("small", " refused")),
        tag("span", percent(own.kinds["failed"], own.calls), tag("small", " failed")),
    )
    confirmations = (
        f"{own.kinds['asked']:,} asked a person to confirm"
        if own.kinds["asked"]
        else f"of {own.calls:,} in {DAYS} days"
    )
    return [
        ("Refused and failed", shares, confirmations),
        ("95 % answered within", own.p95_text or NO_FIGURE, f"in the last {DAYS} days"),
    ]


def traffic_section(traffic: Traffic, *, with_callers: bool) -> Html:
    """Return who came: calls by door, action, page, caller and outcome, and the figures of each day."""
    if isinstance(traffic, str):
        return tag("p", traffic, class_="error")
    if traffic is None or not traffic.rows:
        return tag("p", f"No calls and no page reads in {DAYS} days.", class_="none")
    breakdowns = [
        table(
            breakdown.caption,
            breakdown.heads,
            ((code(line[0]), *line[1:]) for line in breakdown.rows),
            class_="numbers of-doors" if breakdown.heads[1] == "door" else "numbers",
        )
        for breakdown in traffic.breakdowns(with_callers=with_callers)
        if breakdown.heads[:2] != ("action", "ok")  # these stand in the table of actions
    ]
    return fill("traffic", days=DAYS, by_day=Html(traffic.table()), tables=breakdowns)


def action_section(traffic: Traffic, action_id: str) -> Html | None:
    """Return the traffic of one action, None if no traffic is kept."""
    if traffic is None:
        return None
    if isinstance(traffic, str):
        return tag("p", traffic, class_="error")
    report = traffic.of_action(action_id)
    own = report.figures().get(action_id)
    if own is None:
        return tag("p", f"Not called in {DAYS} days.", class_="none")
    heads = [("Calls", f"{own.calls:,}", f"in {DAYS} days"), *outcome_tiles(own)]
    rows = [(code(outcome), door, f"{count:,}") for (outcome, door), count in list(report.failures().items())[:20]]
    reasons = table(
        "Reasons for refusals, questions and failures", ("code", "door", "calls"), rows, class_="numbers of-doors"
    )
    return fill("own_traffic", tiles=tiles(heads), month=month(report, "Calls"), reasons=reasons if rows else None)
