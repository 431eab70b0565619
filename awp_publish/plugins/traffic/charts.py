"""Charts and tables of traffic."""

from collections.abc import Callable
from html import escape
from typing import Final, NamedTuple

from awp_publish.calls.observe import UNANSWERED
from awp_publish.plugins.traffic.record import ASKED, JOB, MAX_ROWS, PAGES, TrafficReport, TrafficRow

KINDS: Final = (("ok", "#2f855a"), ("asked", "#2b6cb0"), ("refused", "#b7791f"), ("failed", "#c53030"))


_FAILED: Final = frozenset({"HANDLER_FAILED", "HANDLER_TIMEOUT", "HANDLER_UNAVAILABLE", "INVALID_OUTPUT", UNANSWERED})


def written_time(milliseconds: float) -> str:
    """Return a duration with two digits, as many as its buckets can tell: "2.4 ms", "120 ms", "1.3 s"."""
    if milliseconds >= 995:
        return f"{milliseconds / 1000:.1f} s" if milliseconds < 9_950 else f"{milliseconds / 1000:.0f} s"
    rounded = float(f"{milliseconds:.2g}")
    return f"{rounded:g} ms" if rounded >= 0.1 or not rounded else "<0.1 ms"


def kind_of(outcome: str) -> str:
    """Classify an outcome: "ok", "asked" (a person's consent), "refused", or "failed" (by the site)."""
    if outcome in ("ok", ASKED):
        return "ok" if outcome == "ok" else "asked"
    is_ours = outcome in _FAILED or outcome.endswith("UNAVAILABLE") or (outcome.isdecimal() and outcome >= "500")
    return "failed" if is_ours else "refused"


def figures(report: TrafficReport) -> list[tuple[str, dict[str, int]]]:
    """Return for each day how many calls and page reads had each kind of outcome."""
    by_day = {day: {kind: 0 for kind, _ in KINDS} for day in report.days}
    for row in report.rows:
        by_day[row.day][kind_of(row.outcome)] += row.calls
    return list(by_day.items())


def traffic_svg(report: TrafficReport, width: int = 720, height: int = 220, *, legend: bool = True) -> str:
    """Return a bar chart of the days as SVG, without styles or scripts, which any content security policy allows.

    Bars have the name of their kind as their class, so that a style sheet may colour them.
    """
    days = figures(report)
    most = max((sum(counts.values()) for _, counts in days), default=0) or 1
    left, bottom, top = 48, 24, 30 if legend else 12
    step = (width - left - 8) / max(1, len(days))
    tall = height - bottom - top
    total = sum(sum(counts.values()) for _, counts in days)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="traffic-title" fill="currentColor" font-family="system-ui, sans-serif" '
        'font-size="11">',
        f'<title id="traffic-title">{total} calls and page reads in {len(days)} days</title>',
        f'<path d="M{left} {top}V{top + tall}H{width - 8}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>',
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">{most if total else 0}</text>',
        f'<text x="{left - 6}" y="{top + tall}" text-anchor="end">0</text>',
    ]
    for index, (day, counts) in enumerate(days):
        x, y = left + index * step + step * 0.1, float(top + tall)
        for kind, colour in KINDS:
            if counts[kind]:
                high = tall * counts[kind] / most
                y -= high
                label = f"{escape(day)}: {counts[kind]} {kind}"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{high:.1f}" fill="{colour}" '
                    f'class="{kind}">'
                    f"<title>{label}</title></rect>"
                )
    for index, (kind, colour) in enumerate(KINDS if legend else ()):
        x = left + index * 90
        parts.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{colour}" class="{kind}"/>')
        parts.append(f'<text x="{x + 15}" y="15">{kind}</text>')
    for index in sorted({0, len(days) - 1}) if days else ():
        anchor = "start" if index == 0 else "end"
        x = left if index == 0 else width - 8
        parts.append(f'<text x="{x}" y="{height - 8}" text-anchor="{anchor}">{escape(days[index][0])}</text>')
    return "".join([*parts, "</svg>"])


def traffic_table(report: TrafficReport) -> str:
    """Return the chart's figures as an HTML table, the newest day first; days without calls are left out."""
    head = "".join(f'<th scope="col">{kind}</th>' for kind, _ in KINDS)
    body = "".join(
        f'<tr><th scope="row">{escape(day)}</th>' + "".join(f"<td>{counts[kind]}</td>" for kind, _ in KINDS) + "</tr>"
        for day, counts in reversed(figures(report))
        if any(counts.values())
    )
    caption = "<caption>Calls and page reads by day</caption>"
    return f'<table>{caption}<thead><tr><th scope="col">day</th>{head}</tr></thead><tbody>{body}</tbody></table>'


class Breakdown(NamedTuple):
    """One table about calls: its caption, column heads and cells as text."""

    caption: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def traffic_breakdowns(report: TrafficReport, *, with_callers: bool) -> list[Breakdown]:
    """Return calls by door, action, page, job, outcome and code, with latencies, the most frequent first.

    Tables without rows are left out. `with_callers` adds one with the callers' names, for readers who may see them.
    """

    def measure(caption: str, name: str, only: Callable[[TrafficRow], bool]) -> Breakdown:
        counts: dict[str, dict[str, int]] = {}
        for (one, outcome), calls in report.sum_by(name, "outcome", only=only).items():
            counts.setdefault(one, {kind: 0 for kind, _ in KINDS})[kind_of(outcome)] += calls
        rows: list[tuple[str, ...]] = []
        for one in sorted(counts, key=lambda one: -sum(counts[one].values()))[:MAX_ROWS]:
            found = report.quantiles(**{name: one}) or {}
            times = [written_time(found[share]) if found else "" for share in ("p50", "p90", "p99")]
            rows.append((one or "(none)", *(f"{calls:,}" for calls in counts[one].values()), *times))
        heads = (name, *(kind for kind, _ in KINDS), "50 % within", "90 % within", "99 % within")
        return Breakdown(caption, heads, rows)

    def count(caption: str, heads: tuple[str, ...], only: Callable[[TrafficRow], bool]) -> Breakdown:
        names = ["outcome" if head == "code" else "action" if head == "page" else head for head in heads]
        sums = list(report.sum_by(*names, only=only).items())[:MAX_ROWS]
        return Breakdown(caption, (*heads, "calls"), [(*key, f"{calls:,}") for key, calls in sums])

    found = [
        measure("By door", "door", lambda row: True),
        measure("By action", "action", lambda row: row.door not in PAGES and row.door != JOB),
        count("Page reads", ("page", "door"), lambda row: row.door in PAGES),
        count("Background jobs", ("action", "outcome"), lambda row: row.door == JOB),
        count("By outcome", ("outcome",), lambda row: True),
        count("Refusals and failures by code", ("code", "door"), lambda row: row.outcome not in ("ok", ASKED)),
    ]
    if with_callers:
        who = count("By caller", ("caller", "label"), lambda row: row.door not in PAGES and row.door != JOB)
        found.append(who._replace(rows=[(row[0] or "nobody known", *row[1:]) for row in who.rows]))
    return [one for one in found if one.rows]
