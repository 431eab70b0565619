"""The report of traffic: calls of some days with their outcomes and durations, as figures, a chart and tables."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Final, NamedTuple

from awp_publish.calls.observe import UNANSWERED

MAX_ROWS: Final = 100
"""Rows of each table on an HTML page."""

OTHERS: Final = "(others)"

PAGES: Final = frozenset({"markdown", "som"})
"""The names under which page reads are counted in place of a door."""

JOB: Final = "job"
"""The name under which runs of background jobs are counted in place of a door."""

BOUNDS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
"""Upper bounds of the latency buckets in milliseconds; one further bucket counts slower calls."""

ASKED: Final = "CONFIRMATION_REQUIRED"
"""The outcome of a call for which a person's consent was asked: no refusal, but the first half of a confirmed call."""

KINDS: Final = (("ok", "#2f855a"), ("asked", "#2b6cb0"), ("refused", "#b7791f"), ("failed", "#c53030"))
"""Kinds of outcomes, with their colours in a chart."""

_FAILED: Final = frozenset({"HANDLER_FAILED", "HANDLER_TIMEOUT", "HANDLER_UNAVAILABLE", "INVALID_OUTPUT", UNANSWERED})


class TrafficRow(NamedTuple):
    """The number of calls (or page reads) of one day, door, action, caller, label and outcome."""

    day: str
    door: str
    action: str
    caller: str
    label: str
    outcome: str
    calls: int


class Breakdown(NamedTuple):
    """One table about calls: its caption, column heads and cells as text."""

    caption: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


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


def is_call(door: str) -> bool:
    """Return True for a door of calls, False for what stands in place of one: readings of pages, and jobs."""
    return door not in PAGES and door != JOB


def quantile(buckets: Sequence[int], share: float) -> float:
    """Return the milliseconds within which a share of the calls ended, interpolated within its bucket."""
    target, seen = share * sum(buckets), 0
    for index, count in enumerate(buckets):
        if count and seen + count >= target:
            low = BOUNDS[index - 1] if index else 0.0
            if index == len(BOUNDS):
                return float(low)
            return round(low + (BOUNDS[index] - low) * (target - seen) / count, 3)
        seen += count
    return 0.0


@dataclass(slots=True)
class Figures:
    """The calls of an action, or of all, by kind of outcome. `buckets` are those of their durations (`BOUNDS`)."""

    kinds: dict[str, int] = field(default_factory=lambda: {kind: 0 for kind, _ in KINDS})
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

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

    @property
    def p95_text(self) -> str | None:
        """The same in words."""
        return None if (time := self.p95) is None else written_time(time)

    def add(self, other: "Figures") -> None:
        """Add the calls of another action."""
        for kind, count in other.kinds.items():
            self.kinds[kind] += count
        self.buckets = [mine + its for mine, its in zip(self.buckets, other.buckets, strict=True)]


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """The record of some days, the oldest first. `latencies` has the buckets by day, door and action."""

    days: tuple[str, ...]
    rows: tuple[TrafficRow, ...]
    latencies: Mapping[tuple[str, str, str], Sequence[int]] = field(default_factory=dict)
    milliseconds: Mapping[tuple[str, str, str], float] = field(default_factory=dict)

    def sum_by(self, *names: str, only: Callable[[TrafficRow], bool] = lambda row: True) -> dict[tuple[str, ...], int]:
        """Return the sums of calls grouped by these members of a row, the largest first."""
        sums: dict[tuple[str, ...], int] = {}
        for row in filter(only, self.rows):
            key = tuple(str(getattr(row, name)) for name in names)
            sums[key] = sums.get(key, 0) + row.calls
        return dict(sorted(sums.items(), key=lambda pair: (-pair[1], pair[0])))

    def of_actions(self, action_ids: Collection[str]) -> "TrafficReport":
        """Return the report without calls and jobs of other actions than these, for readers who may know of no other.

        Whatever else was recorded, of an action that is gone for example, was perhaps not for everybody.
        """
        allowed = {*action_ids, "", OTHERS}
        rows = tuple(row for row in self.rows if row.door in PAGES or row.action in allowed)
        latencies = {key: buckets for key, buckets in self.latencies.items() if key[1] in PAGES or key[2] in allowed}
        return replace(self, rows=rows, latencies=latencies)

    def quantiles(self, door: str | None = None, action: str | None = None) -> dict[str, float] | None:
        """Return the median, 90th and 99th percentile of latencies in milliseconds, or None without measurements."""
        buckets = [0] * (len(BOUNDS) + 1)
        for (_, of_door, of_action), counted in self.latencies.items():
            if door in (None, of_door) and action in (None, of_action):
                buckets = [mine + its for mine, its in zip(buckets, counted, strict=True)]
        if not any(buckets):
            return None
        return {name: quantile(buckets, share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}

    def lines(self) -> Iterable[dict[str, object]]:
        """Yield the report as objects for JSON lines: sums of calls, then latencies."""
        for row in self.rows:
            yield {"type": "pages" if row.door in PAGES else "jobs" if row.door == JOB else "calls", **row._asdict()}
        for (day, door, action), buckets in self.latencies.items():
            if any(buckets):
                shares = {name: quantile(buckets, share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}
                facts = {"type": "latency", "day": day, "door": door, "action": action}
                yield {**facts, "calls": sum(buckets), "milliseconds": shares, "buckets": list(buckets)}

    def figures(self) -> dict[str, Figures]:
        """Return the figures of each action that was called, without its jobs and without readings of pages."""
        figures: dict[str, Figures] = {}
        for row in self.rows:
            if is_call(row.door):
                figures.setdefault(row.action, Figures()).kinds[kind_of(row.outcome)] += row.calls
        for (_, door, action), counted in self.latencies.items():
            if is_call(door) and action in figures:
                own = figures[action]
                own.buckets = [mine + its for mine, its in zip(own.buckets, counted, strict=True)]
        return figures

    def total(self) -> Figures:
        """Return the figures of all actions together."""
        whole = Figures()
        for own in self.figures().values():
            whole.add(own)
        return whole

    def calls_on(self, day: str) -> int:
        """Return the calls of one day, without jobs and readings of pages."""
        return sum(row.calls for row in self.rows if row.day == day and is_call(row.door))

    def of_action(self, action_id: str) -> "TrafficReport":
        """Return the report of one action, with its jobs and without readings of pages."""
        rows = tuple(row for row in self.rows if row.action == action_id and row.door not in PAGES)
        latencies = {
            key: counted for key, counted in self.latencies.items() if key[2] == action_id and key[1] not in PAGES
        }
        return replace(self, rows=rows, latencies=latencies)

    def failures(self) -> dict[tuple[str, ...], int]:
        """Return how often calls were not answered, by outcome and door, the most frequent first."""
        return self.sum_by("outcome", "door", only=lambda row: row.outcome != "ok" and row.door != JOB)

    def by_day(self) -> list[tuple[str, dict[str, int]]]:
        """Return for each day how many calls and page reads had each kind of outcome."""
        by_day = {day: {kind: 0 for kind, _ in KINDS} for day in self.days}
        for row in self.rows:
            by_day[row.day][kind_of(row.outcome)] += row.calls
        return list(by_day.items())

    def chart(self, width: int = 720, height: int = 220, *, legend: bool = True) -> str:
        """Return a bar chart of the days as SVG, without styles or scripts, which any content security policy allows.

        Bars have the name of their kind as their class, so that a style sheet may colour them.
        """
        days = self.by_day()
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
            f'<path d="M{left} {top}V{top + tall}H{width - 8}" fill="none" stroke="currentColor" '
            'stroke-opacity="0.4"/>',
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

    def table(self) -> str:
        """Return the chart's figures as an HTML table, the newest day first; days without calls are left out."""
        head = "".join(f'<th scope="col">{kind}</th>' for kind, _ in KINDS)
        body = "".join(
            f'<tr><th scope="row">{escape(day)}</th>'
            + "".join(f"<td>{counts[kind]}</td>" for kind, _ in KINDS)
            + "</tr>"
            for day, counts in reversed(self.by_day())
            if any(counts.values())
        )
        caption = "<caption>Calls and page reads by day</caption>"
        return f'<table>{caption}<thead><tr><th scope="col">day</th>{head}</tr></thead><tbody>{body}</tbody></table>'

    def breakdowns(self, *, with_callers: bool) -> list[Breakdown]:
        """Return calls by door, action, page, job, outcome and code, with latencies, the most frequent first.

        Tables without rows are left out. `with_callers` adds one with the callers' names, for readers who may see them.
        """

        def measure(caption: str, name: str, only: Callable[[TrafficRow], bool]) -> Breakdown:
            counts: dict[str, dict[str, int]] = {}
            for (value, outcome), calls in self.sum_by(name, "outcome", only=only).items():
                counts.setdefault(value, {kind: 0 for kind, _ in KINDS})[kind_of(outcome)] += calls
            rows: list[tuple[str, ...]] = []
            for value in sorted(counts, key=lambda name: -sum(counts[name].values()))[:MAX_ROWS]:
                quantiles = self.quantiles(**{name: value}) or {}
                times = [written_time(quantiles[share]) if quantiles else "" for share in ("p50", "p90", "p99")]
                rows.append((value or "(none)", *(f"{calls:,}" for calls in counts[value].values()), *times))
            heads = (name, *(kind for kind, _ in KINDS), "50 % within", "90 % within", "99 % within")
            return Breakdown(caption, heads, rows)

        def count(caption: str, heads: tuple[str, ...], only: Callable[[TrafficRow], bool]) -> Breakdown:
            names = ["outcome" if head == "code" else "action" if head == "page" else head for head in heads]
            sums = list(self.sum_by(*names, only=only).items())[:MAX_ROWS]
            return Breakdown(caption, (*heads, "calls"), [(*key, f"{calls:,}") for key, calls in sums])

        tables = [
            measure("By door", "door", lambda row: True),
            measure("By action", "action", lambda row: is_call(row.door)),
            count("Page reads", ("page", "door"), lambda row: row.door in PAGES),
            count("Background jobs", ("action", "outcome"), lambda row: row.door == JOB),
            count("By outcome", ("outcome",), lambda row: True),
            count("Refusals and failures by code", ("code", "door"), lambda row: row.outcome not in ("ok", ASKED)),
        ]
        if with_callers:
            who = count("By caller", ("caller", "label"), lambda row: is_call(row.door))
            tables.append(who._replace(rows=[(row[0] or "nobody known", *row[1:]) for row in who.rows]))
        return [breakdown for breakdown in tables if breakdown.rows]
