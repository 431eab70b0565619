"""The options of `site.page(...)`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from typing_extensions import TypedDict

from awp_publish.schema.options import Id, LazyAdapter, Option, Text, strict


@strict
class PageSettings(TypedDict, total=False):
    """The options of a page that the core reads. See docs/pages.md and docs/actions-json.md."""

    title: Annotated[Text, Option("what it is called", "the end of its path in words")]
    description: Annotated[Text, Option("what is on it", "the docstring of its handler")]
    id: Annotated[Id, Option("what goes before the names that are declared on it", "the end of its path")]
    guide: Annotated[Text, Option("how an agent gets on with the page", "the description")]
    actions: Annotated[Sequence[Id], Option("ids of the actions whose forms are on the page", "none")]
    complete: Annotated[
        Any,
        Option(
            "suggests values of placeholders to [MCP clients](mcp.md#completion): a function, or one by name", "none"
        ),
    ]


class PageOptions(PageSettings, total=False):
    """All options of a page, for editors, type checkers and docs: with those of this package's plug-ins."""

    map: Annotated[
        Mapping[str, Any],
        Option("[its part of actions.json](#the-map-of-a-page), in the specification's own words", "none"),
    ]


PAGE: Final[LazyAdapter[PageSettings]] = LazyAdapter(PageSettings)
