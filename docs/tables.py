"""Write the tables that are made from the code into the pages: `make docs`. A test notices when one is out of date."""

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, get_type_hints

from awp_publish.calls.guard import in_order
from awp_publish.declare.plugins import gates_of
from awp_publish.declare.settings.about import About
from awp_publish.declare.settings.actions import ActionOptions, AgentOptions
from awp_publish.declare.settings.pages import PageOptions
from awp_publish.declare.settings.site import Limits, SiteSettings
from awp_publish.declare.site import Site
from awp_publish.maps import failures
from awp_publish.plugin import ENTRY_POINTS, Gate, installed
from awp_publish.plugins.actions_json import items
from awp_publish.plugins.awas.options import AwasSettings
from awp_publish.plugins.idempotency.gate import CLAIM_AFTER
from awp_publish.problems import (
    ALL,
    CrossSiteCookies,
    ForeignHost,
    InvalidOutput,
    Problem,
    SessionUnknown,
    StoreUnavailable,
    TemporarilyUnavailable,
)
from awp_publish.schema.options import Option


def table(columns: str, rows: Iterable[str]) -> str:
    """A Markdown table."""
    return "\n".join((columns, "|" + "---|" * (columns.count("|") - 1), *rows))


# --- The gates in their order: what declares a gate, and what it refuses ---


@dataclass(frozen=True, slots=True)
class Around:
    """What refuses calls before or after the gates: its name, what puts it there, and its problems."""

    name: str
    options: tuple[str, ...]
    refuses: tuple[type[Problem], ...]


BEFORE: Final = (
    Around("browsers", (), (ForeignHost, CrossSiteCookies)),
    Around("liveness", ("@site.status", "set_status"), (TemporarilyUnavailable,)),
    Around("session", ("AWP-Session",), (SessionUnknown,)),
)
AFTER: Final = (
    Around("store", ("store",), (StoreUnavailable,)),
    Around("output", (), (InvalidOutput,)),
)


def all_gates() -> list[Around | Gate]:
    """The gates of a site with the plug-ins that each has by default, and what is around them."""
    plugins = Site("Shop", "Sells things.", url="https://shop.example").plugins
    return [*BEFORE, *in_order(gates_of(plugins)), *AFTER]


def gate_table() -> str:
    """The gates as a Markdown table."""
    rows = [
        f"| {gate.name} | {', '.join(f'`{option}`' for option in gate.options) or 'always there'} "
        f"| {', '.join(f'`{kind.slug}`' for kind in gate.refuses)} |"
        for gate in all_gates()
    ]
    return table("| gate | declared by | refuses with |", rows)


def claim_table() -> str:
    """Return the fates of an idempotency key as a Markdown table."""
    rows = [f"| {ended} | {' | '.join(fates)} |" for ended, fates in CLAIM_AFTER.items()]
    return table("| the first call | repeatable action | other | irreversible |", rows)


# --- The bridge ---


def item_table() -> str:
    """The items of the bridge."""
    rows = []
    for item, (members, sender) in items.ITEMS.items():
        named = (re.fullmatch(r"(\w+)(\*?)(?:{(.*)})?", member) for member in members.split())
        told = (
            f"`{found[1]}`{found[2]}"
            + (f" ({', '.join(f'`{one}`' for one in found[3].split(','))})" if found[3] else "")
            for found in named
            if found
        )
        rows.append(f"| `{item}` | {', '.join(told).replace('*`', '`*')} | {sender} |")
    return table("| item | members, `*` has to be there | sent by |", rows)


def bridge_code_table() -> str:
    """What the codes of the bridge are at doors with problems."""
    by_status: dict[int, list[str]] = {}
    for code in failures.CODES:
        by_status.setdefault(items.STATUSES.get(code, 502), []).append(f"`{code}`")
    rows = [f"| {status} | {', '.join(codes)} |" for status, codes in sorted(by_status.items())]
    return table("| status at other doors | codes |", rows)


# --- All tables ---


def all_problems() -> list[type[Problem]]:
    """The problems of the core and of every plug-in, those with which its gates refuse among them."""
    refused = (kind for gate in all_gates() for kind in gate.refuses)
    listed = (kind for plugin in installed().values() for kind in plugin.problems)
    return list(dict.fromkeys((*ALL, *refused, *listed)))


def problem_table() -> str:
    """Every problem type by its status."""
    by_status: dict[int, list[str]] = {}
    for kind in all_problems():
        by_status.setdefault(kind.default_status, []).append(f"`{kind.slug}`")
    rows = [f"| {status} | {', '.join(slugs)} |" for status, slugs in sorted(by_status.items())]
    return table("| status | `type` |", rows)


def option_rows(options: type) -> list[tuple[str, Option]]:
    """Return the options of a settings class with their rows, in order."""
    kinds = get_type_hints(options, include_extras=True)
    described = [(name, part) for name, kind in kinds.items() for part in getattr(kind, "__metadata__", ())]
    return [(name, part) for name, part in described if isinstance(part, Option)]


def option_table(columns: str, options: type, *, beyond: type | None = None) -> str:
    """The options of a settings class, without those of the class that it extends."""
    inherited = dict(option_rows(beyond)) if beyond is not None else {}
    own = [(name, option) for name, option in option_rows(options) if name not in inherited]
    rows = [f"| `{name}` | {option.meaning} | {option.other} |" for name, option in own]
    return table(columns, rows)


def feature_table() -> str:
    """The plug-ins of this package: the value that chooses each with its options, and what it is."""
    rows = []
    for name, plugin in sorted(installed().items()):
        text = inspect.getdoc(plugin.options) if plugin.options is not None else _heading_of(name)
        words = " ".join(str(text).partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        by_default = "; by default" if plugin.is_default is True else ""
        value = f"`{plugin.options.__name__}{_call_of(plugin.options)}`" if plugin.options is not None else ""
        rows.append(f"| `{name}` | {value} | {words}{by_default} |")
    return table("| feature | value with its options | what it is |", rows)


def _call_of(options: type) -> str:
    """The fields of a class of options with their defaults, as they are written."""
    parts = []
    for field in fields(options):
        is_plain = isinstance(field.default, (bool, int, str)) or field.default is None
        parts.append(f"{field.name}={field.default!r}" if is_plain else field.name)
    return f"({', '.join(parts)})".replace("'", '"')


def _heading_of(name: str) -> str | None:
    """The first line of the docstring of a plug-in's module, without the name with which it begins."""
    point = next(point for point in entry_points(group=ENTRY_POINTS) if point.name == name)
    line = (import_module(point.module).__doc__ or "").partition("\n")[0]
    title, _, rest = line.partition(": ")
    return rest if title.lower().replace(".", "_") == name else line


PUBLISHED = "| option | what it says | where it is published |"
DEFAULT = "| option | what it says | default |"

MAKERS = {
    "site options": lambda: option_table(PUBLISHED, SiteSettings),
    "limits options": lambda: option_table(PUBLISHED, Limits),
    "features": feature_table,
    "about options": lambda: option_table(PUBLISHED, About),
    "action options": lambda: option_table(DEFAULT, ActionOptions),
    "awas options": lambda: option_table(DEFAULT, AwasSettings),
    "agent options": lambda: option_table(DEFAULT, AgentOptions, beyond=ActionOptions),
    "page options": lambda: option_table(DEFAULT, PageOptions),
    "bridge items": item_table,
    "bridge codes": bridge_code_table,
    "problems": problem_table,
    "gates": gate_table,
    "claims": claim_table,
}


def renew(text: str) -> str:
    """A page with its tables made anew."""
    for name, make in MAKERS.items():
        before, start, rest = text.partition(f"<!-- table: {name} -->\n")
        if start:
            _, end, after = rest.partition("<!-- end -->")
            text = f"{before}{start}{make()}\n{end}{after}"
    return text


def main() -> None:
    for page in sorted(Path(__file__).parent.glob("*.md")):
        text = page.read_text()
        if renew(text) != text:
            page.write_text(renew(text))
            print(f"renewed {page.name}")


if __name__ == "__main__":
    main()
