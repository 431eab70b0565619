"""The table that a run prints: what was measured, its limit, beside what, and the verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import sub, truediv
from statistics import median
from typing import Final, Literal, TypeAlias

from benchmarks.measure import Found, Series

Unit: TypeAlias = Literal["x", "us", "ms", "s", "/s", "jobs", "MiB", "trips", "tokens"]

HEADINGS: Final = ("what", "measured", "limit", "beside", "verdict", "details")


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound: `most` for what must stay small, or its opposite. `unit` is "x" for ratios, "us" for added time."""

    bound: float
    unit: Unit = "x"
    most: bool = True

    def holds(self, figure: float) -> bool:
        return figure <= self.bound if self.most else figure >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.most else '>='} {self.bound:.2f} {self.unit}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line. Without a figure it says in `details` why nothing was measured; without a limit it only informs."""

    what: str
    beside: str
    figure: float | None
    limit: Limit | None
    details: str = ""
    unit: str = "x"

    @property
    def verdict(self) -> str:
        if self.figure is None:
            return "NOT MEASURED"
        if self.limit is None:
            return "(no limit)"
        return "ok" if self.limit.holds(self.figure) else "MISSED"

    def cells(self) -> tuple[str, ...]:
        shown = "-" if self.figure is None else f"{self.figure:.{3 if abs(self.figure) < 2 else 2}f} {self.unit}"
        return self.what, shown, str(self.limit or ""), self.beside, self.verdict, self.details


def at_most(bound: float, unit: Unit = "x") -> Limit:
    return Limit(bound, unit)


def at_least(bound: float) -> Limit:
    return Limit(bound, most=False)


def compare(what: str, found: Found, name: str, rival: str, beside: str, limit: Limit | None, unit: str = "us") -> Row:
    """How many times its rival a case took (or, of requests a second, gave): the median of the rounds' ratios."""
    series = [_paired(of, name, rival, truediv) for of in found.values()]
    return Row(what, beside, _worst(series, limit), limit, _details(found, name, rival, unit))


def added(what: str, found: Found, name: str, rival: str, beside: str, limit: Limit) -> Row:
    """How many microseconds more than its rival a case took: the median of the rounds' differences."""
    series = [_paired(of, name, rival, sub) for of in found.values()]
    return Row(what, beside, _worst(series, limit), limit, _details(found, name, rival, "us"), "us")


def share(what: str, found: Found, name: str, rival: str, whole: str, beside: str, limit: Limit) -> Row:
    """How many times what a third case takes a case adds to its rival: the median of the rounds' ratios."""
    series, details = [], []
    for loop, of in found.items():
        adds = _paired(of, name, rival, sub)
        series.append(list(map(truediv, adds, of[whole])))
        details.append(f"{loop} {median(adds):.2f} : {median(of[whole]):.2f} us")
    return Row(what, beside, _worst(series, limit), limit, "; ".join(details))


def _paired(of: Mapping[str, Series], name: str, rival: str, operation: Callable[[float, float], float]) -> Series:
    return [operation(mine, other) for mine, other in zip(of[name], of[rival], strict=True)]


def _worst(series: Sequence[Series], limit: Limit | None) -> float:
    """The least favourable of the event loops: a limit has to hold on each."""
    medians = [median(item) for item in series]
    return max(medians) if limit is None or limit.most else min(medians)


def _details(found: Found, name: str, rival: str, unit: str) -> str:
    """The median times of both, on each event loop."""
    digits = 2 if unit == "us" else 0
    return "; ".join(
        f"{loop} {median(of[name]):.{digits}f} : {median(of[rival]):.{digits}f} {unit}" for loop, of in found.items()
    )


def print_table(rows: Sequence[Row]) -> None:
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def exit_status(rows: Sequence[Row]) -> int:
    """1 when a limit is missed, 2 when none is but something with a limit could not be measured, else 0."""
    verdicts = {row.verdict for row in rows}
    return 1 if "MISSED" in verdicts else 2 if "NOT MEASURED" in verdicts else 0
