"""The actions of `page.act`, by name: each takes an `Act` and returns its `Effect`."""

from collections.abc import Callable, Mapping
from typing import Final

from awp_publish.browsing.act import Act, Effect
from awp_publish.browsing.activation import click, submit
from awp_publish.browsing.filling import clear, fill_form, select, toggle, type_text

VERBS: Final[Mapping[str, Callable[[Act], Effect]]] = {
    "click": click,
    "type": type_text,
    "select": select,
    "toggle": toggle,
    "clear": clear,
    "submit": submit,
    "submit_form": submit,
    "fill_form": fill_form,
}
"""The actions of `page.act`, besides `scroll`, which acts on no element."""
SCROLL: Final = "scroll"
ACTIONS: Final = [*VERBS, SCROLL]
RESERVED: Final = ("intent.", "skill.")
"""Namespaces of the draft for more than one action on one page. The site's own actions are called by skills.invoke."""
_NAMESPACES: Final = ("primitive.", "semantic.")
FORM_WIDE: Final = frozenset({"submit", "submit_form", "fill_form"})
"""Actions whose target can be a whole form."""


def plain_name(action: str) -> str:
    """Return an action without its namespace (paper 6.4): `click` for `primitive.click`."""
    for namespace in _NAMESPACES:
        action = action.removeprefix(namespace)
    return action
