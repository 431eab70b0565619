"""The options of `site.page(...)`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, PlainValidator
from typing_extensions import TypedDict

from awp_publish.declare.settings.selectors import check_selector
from awp_publish.maps import expressions
from awp_publish.maps.engine import ExpressionError, has_engine
from awp_publish.model import Attachment, Locator, PageCheck, Place, Projection, Signal, State, Transition
from awp_publish.schema.options import Id, LazyAdapter, Option, Text, check_text, check_texts, strict, unpack


def _read_locator(value: object) -> Locator:
    members = {"css": value} if isinstance(value, str) else unpack(value)
    locator = _LOCATOR.validate_python(members)
    for css in (locator.css, *locator.fallbacks):
        check_selector(css)
    return locator


def _read_place(value: object) -> Place:
    """Read a place; a text is resolved later, when the names of the page's locators are known."""
    return check_text(value) if isinstance(value, str) else _read_locator(value)


def _read_places(value: object) -> tuple[Place, ...]:
    several = value if isinstance(value, (list, tuple)) else [value]
    if not several:
        raise ValueError("must name at least one place")
    return tuple(map(_read_place, several))


def check_expression(value: str) -> str:
    """Refuse a JSONata expression that is invalid, or in braces, which are added when it is published."""
    if "{%" in value or "%}" in value:
        raise ValueError("write the expression without {% and %}, which are put around it when it is published")
    if has_engine():
        try:
            expressions.check_expression(value)
        except ExpressionError as error:
            raise ValueError(f"{value[:60]!r} cannot be used: {error.message.rstrip('.')}") from error
    return check_text(value)


def _of_state(value: object) -> object:
    members = unpack(value)
    return {**members, "where": _read_places(members.get("where"))} if isinstance(members, Mapping) else members


def _of_projection(value: object) -> object:
    members = unpack(value)
    if not isinstance(members, Mapping) or not isinstance(members.get("records"), Mapping):
        return members
    records = {}
    for name, records_value in members["records"].items():
        record = unpack(records_value)
        if isinstance(record, Mapping) and isinstance(record.get("fields", {}), Mapping):
            fields = record.get("fields", {}).items()
            values = {
                field: {"css": given_value} if isinstance(given_value, str) else unpack(given_value)
                for field, given_value in fields
            }
            record = {**record, "fields": values}
        records[name] = record
    return {**members, "records": records}


def _of_place(member: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        members = unpack(value)
        if not isinstance(members, Mapping) or members.get(member) is None:
            return members
        several = member == "visible"
        return {**members, member: (_read_places if several else _read_place)(members[member])}

    return read


def check_projection(value: Projection) -> Projection:
    """Refuse what no runtime could read: invalid selectors, and expressions in braces."""
    for records in value.records.values():
        for css in (records.css, *(field.css for field in records.fields.values())):
            if css is not None:
                check_selector(css)
    for expression in (value.state, *value.summaries.values(), *value.after.values()):
        check_expression(expression)
    return value


LocatorOption: TypeAlias = Annotated[Locator | str, PlainValidator(_read_locator)]


@strict
class PageSettings(TypedDict, total=False):
    """The options of a page. See docs/pages.md and docs/actions-json.md."""

    title: Annotated[Text, Option("what it is called", "the end of its path in words")]
    description: Annotated[Text, Option("what is on it", "the docstring of its handler")]
    id: Annotated[Id, Option("what goes before the names that are declared on it", "the end of its path")]
    guide: Annotated[Text, Option("how an agent gets on with the page", "the description")]
    actions: Annotated[Sequence[Id], Option("ids of the actions whose forms are on the page", "none")]
    locators: Annotated[
        Mapping[Id, LocatorOption],
        Option("places by name: `Locator(css, role=, name=, text_contains=, fallbacks=)`, or a CSS selector", "none"),
    ]
    states: Annotated[
        Mapping[Id, Annotated[State, BeforeValidator(_of_state)]],
        Option("conditions of the page by name: `State(description, where=, shows=)`", "none"),
    ]
    transitions: Annotated[
        Mapping[Id, Annotated[Transition, BeforeValidator(unpack), AfterValidator(check_texts("every_ms"))]],
        Option("ways between states: `Transition(start, end, action=, signal=, every_ms=, do_not_use=)`", "none"),
    ]
    projections: Annotated[
        Mapping[Id, Annotated[Projection, BeforeValidator(_of_projection), AfterValidator(check_projection)]],
        Option("the page's state in a few facts: `Projection(description, records, state, schema=, ...)`", "none"),
    ]
    signals: Annotated[
        Mapping[Id, Annotated[Signal, BeforeValidator(_of_place("at")), AfterValidator(check_texts("event"))]],
        Option("events of which agents may be notified: `Signal(event, payload=, at=, description=)`", "none"),
    ]
    attachments: Annotated[
        Mapping[
            Id, Annotated[Attachment, BeforeValidator(_of_place("at")), AfterValidator(check_texts("kind", "label"))]
        ],
        Option("what a runtime adds to the page: `Attachment(kind, at=, label=, description=)`", "none"),
    ]
    checks: Annotated[
        Mapping[Id, Annotated[PageCheck, BeforeValidator(_of_place("visible"))]],
        Option("what must be visible: `PageCheck(description, visible=, severity=)`", "none"),
    ]
    complete: Annotated[
        Any,
        Option(
            "suggests values of placeholders to [MCP clients](mcp.md#completion): a function, or one by name", "none"
        ),
    ]


_LOCATOR: Final[LazyAdapter[Locator]] = LazyAdapter(Locator)
PAGE: Final[LazyAdapter[PageSettings]] = LazyAdapter(PageSettings)
