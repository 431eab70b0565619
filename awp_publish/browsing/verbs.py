"""The actions of `page.act`, as one table: every name that the paper, the MVP text and the draft give them."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from awp_publish.browsing.acting import Act, Effect
from awp_publish.browsing.clicking import click
from awp_publish.browsing.filling import clear, select, toggle, type_text
from awp_publish.browsing.form_filling import fill_form
from awp_publish.browsing.sending import submit

Verb: TypeAlias = Callable[[Act], Effect]

VERBS: Final[Mapping[str, Verb]] = {
    "click": click,
    "type": type_text,
    "select": select,
    "toggle": toggle,
    "clear": clear,
    "submit": submit,
    "submit_form": submit,
    "fill_form": fill_form,
}
"""Beside these there is `scroll`, which acts upon no element."""
SCROLL: Final = "scroll"
ACTIONS: Final = [*VERBS, SCROLL]
RESERVED: Final = ("intent.", "skill.")
"""Namespaces of the draft for what is more than one action upon one page; the site's actions are in skills.invoke."""
NAMESPACES: Final = ("primitive.", "semantic.")
FORM_WIDE: Final = frozenset({"submit", "submit_form", "fill_form"})
"""The actions that a whole form can be the target of."""


def plain_name(action: str) -> str:
    """The action without its namespace (paper 6.4): `primitive.click` is `click`."""
    for namespace in NAMESPACES:
        action = action.removeprefix(namespace)
    return action
