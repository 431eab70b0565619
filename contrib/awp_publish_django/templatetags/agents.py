"""Template tags: the attributes that agents look for, and the links that point at the documents.

{% load agents %}
<head>{% head_links %}</head>
<form {% awas_action "search_books" %}><input name="q" {% awas_param "search_books" "q" %}></form>

`styles` are the spellings, with a space between: "data-awas", "data-ai", "tool". The other functions of
`awp_publish.plugins.templating` are tags of the same names.
"""

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, cast, get_args

from django.template import Library
from django.utils.safestring import SafeString, mark_safe

from awp_publish import DeclarationError
from awp_publish.model import Catalog
from awp_publish.plugins.templating import (
    AWAS,
    Style,
    action_attributes,
    agents_script,
    context_attributes,
    head_links as links_of,
    page_meta,
    param_attributes,
    result_attributes,
    structured_data,
    structured_result,
    webmcp_hash,
    webmcp_script,
)
from awp_publish_django.publication import get_publication

register = Library()

DEFAULT: Final = " ".join(AWAS)
STYLES: Final[tuple[str, ...]] = get_args(Style)

P = ParamSpec("P")


def _catalog() -> Catalog:
    return get_publication().site.catalog


def _styles(names: str) -> tuple[Style, ...]:
    styles = tuple(names.split())
    for style in styles:
        if style not in STYLES:
            raise DeclarationError("template", f'there is no style "{style}". There are: {", ".join(STYLES)}.')
    return cast(tuple[Style, ...], styles)


@register.simple_tag
def awas_action(action_id: str, context: str | None = None, styles: str = DEFAULT) -> SafeString:
    """Attributes of the element that performs an action."""
    return mark_safe(action_attributes(_catalog(), action_id, _styles(styles), context))


@register.simple_tag
def awas_param(action_id: str, name: str, styles: str = DEFAULT) -> SafeString:
    """Attributes of the control that holds an input."""
    return mark_safe(param_attributes(_catalog(), action_id, name, _styles(styles)))


@register.simple_tag
def awas_context(context: str, styles: str = DEFAULT) -> SafeString:
    """Attributes that say what a part of the page is about."""
    return mark_safe(context_attributes(context, _styles(styles)))


@register.simple_tag
def awas_result(action_id: str, styles: str = DEFAULT) -> SafeString:
    """Attributes of the element in which a result appears."""
    return mark_safe(result_attributes(_catalog(), action_id, _styles(styles)))


@register.simple_tag
def head_links(
    path: str | None = None,
    image: str | None = None,
    title: str | None = None,
    description: str | None = None,
    nonce: str | None = None,
) -> SafeString:
    """`<link>` elements for the head, one for each document; with the page's path, all that agents look for there."""
    return mark_safe(links_of(_catalog(), path=path, image=image, title=title, description=description, nonce=nonce))


def _add(function: Callable[Concatenate[Catalog, P], str]) -> None:
    """Add a function of the site as a tag of its own name and arguments."""

    def write(*args: P.args, **kwargs: P.kwargs) -> SafeString:
        return mark_safe(function(_catalog(), *args, **kwargs))

    register.simple_tag(write, name=function.__name__)


for _function in (page_meta, structured_data, structured_result, webmcp_script, webmcp_hash, agents_script):
    _add(_function)
