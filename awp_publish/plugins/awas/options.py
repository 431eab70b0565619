"""The options of an action that only AWAS has."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, PlainValidator
from typing_extensions import TypedDict

from awp_publish.model import ActionType, JsonObject
from awp_publish.schema.options import Flag, Link, Option, Text, check_json, shortened, strict

_RESULT_TYPES: Final = ("single", "list", "table", "form")
_RESULT_MEMBERS: Final = ("type", "selector", "itemSelector", "properties", "pagination")


def check_selector(value: str) -> str:
    """Refuse a text that no CSS parser accepts (AWAS, validation rule 3)."""
    if not value.strip():
        raise ValueError("a CSS selector must not be empty")
    from awp_publish.pages.selectors import selector_fault  # where there are selectors at all

    if fault := selector_fault(value):
        raise ValueError(f"{value!r} is not a CSS selector ({fault})")
    return value


def read_selectors(value: object) -> str | Mapping[str, str]:
    """Read a mapping from inputs to selectors, or the attribute style by which the page's markup names its inputs."""
    if isinstance(value, str) and value in ("data-awas", "data-ai"):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return {name: check_selector(selector) for name, selector in value.items()}
    raise ValueError('must be "data-awas", "data-ai", or a dictionary of input names and CSS selectors')


def check_result(result: JsonObject) -> JsonObject:
    """Check and copy the AWAS 1.0 result object, which locates a result in the page."""
    if result.get("type") not in _RESULT_TYPES:
        raise ValueError(f"type must be one of {', '.join(map(repr, _RESULT_TYPES))}, not {result.get('type')!r}")
    if "selector" not in result:
        raise ValueError("selector is missing")
    properties, pagination = result.get("properties", {}), result.get("pagination", {})
    if not isinstance(properties, Mapping) or not isinstance(pagination, Mapping):
        raise ValueError("properties and pagination must be dictionaries of CSS selectors")
    for name in (*result, *pagination):
        members = _RESULT_MEMBERS if name in result else ("selector", "nextButton", "currentPage")
        if name not in members:
            near = get_close_matches(name.replace("_", ""), members, n=1)
            raise ValueError(f"{name!r} is not one of its members" + (f"; did you mean {near[0]!r}?" if near else ""))
    for selector in (result["selector"], result.get("itemSelector", "*"), *properties.values(), *pagination.values()):
        if not isinstance(selector, str):
            raise ValueError(f"{shortened(selector)} is not a CSS selector")
        check_selector(selector)
    return check_json({name: result[name] for name in _RESULT_MEMBERS if result.get(name)})


Selector: TypeAlias = Annotated[str, AfterValidator(check_selector)]

SelectorsOption: TypeAlias = Annotated[
    Literal["data-awas", "data-ai"] | Mapping[str, str], PlainValidator(read_selectors)
]


@strict
class AwasSettings(TypedDict, total=False):
    """Options of an action that only AWAS has."""

    type: Annotated[
        ActionType,
        Option(
            "`form_submission`, `navigation`, `search`, `filter`, `data_retrieval`, `state_change`, `custom`",
            "from method and body",
        ),
    ]
    selector: Annotated[Selector, Option("CSS selector of the element that performs the action", "none")]
    selectors: Annotated[
        SelectorsOption,
        Option(
            'CSS selector for each input, or `"data-awas"` or `"data-ai"`: attributes of [templates](templates.md)',
            "none",
        ),
    ]
    result: Annotated[
        JsonObject,
        AfterValidator(check_result),
        Option(
            "where the result is in the page: `{type, selector, itemSelector, properties, pagination}`",
            "none",
        ),
    ]
    preconditions: Annotated[Sequence[Text], Option("conditions that have to be true before, in sentences", "none")]
    preview_url: Annotated[Link, Option("a page that shows what would happen", "none")]
    dry_run: Annotated[Flag, Option("whether the action can be tried without effect", "`False`")]
