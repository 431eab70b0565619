"""A plot of lines on two logarithmic scales, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 640
HEIGHT: Final = 340
LEFT: Final = 70
RIGHT: Final = 110
TOP: Final = 40
BOTTOM: Final = 50


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    colour: str
    points: Sequence[tuple[float, float]]


def log_plot(title: str, across: str, unit: str, lines: Sequence[Line]) -> str:
    """Draw lines by powers of ten; `across` says what the horizontal scale is, `unit` what the vertical one counts."""
    horizontal = _scale([x for line in lines for x, _ in line.points], LEFT, WIDTH - RIGHT)
    vertical = _scale([y for line in lines for _, y in line.points], HEIGHT - BOTTOM, TOP)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for power in vertical.powers:
        y = vertical.place(10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:,g} {escape(unit)}</text>')
    for power in horizontal.powers:
        x = horizontal.place(10.0**power)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**power:,}</text>')
    for row, line in enumerate(lines):
        points = " ".join(f"{horizontal.place(x):.1f},{vertical.place(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 14 + row * 20}" fill="{line.colour}">{escape(line.name)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) // 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text></svg>')
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where on the picture the powers of ten stand."""

    powers: range
    start: int
    end: int

    def place(self, value: float) -> float:
        share = (log10(value) - self.powers[0]) / max(1, self.powers[-1] - self.powers[0])
        return self.start + share * (self.end - self.start)


def _scale(values: Sequence[float], start: int, end: int) -> _Scale:
    return _Scale(range(floor(log10(min(values))), ceil(log10(max(values))) + 1), start, end)
