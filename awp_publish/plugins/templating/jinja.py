"""The functions of this package in Jinja's templates."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Concatenate

from awp_publish.documents.protocol import Protocol as Published
from awp_publish.model import Catalog
from awp_publish.problems import DeclarationError

if TYPE_CHECKING:
    from jinja2 import Environment
from awp_publish.plugins.templating.attributes import (
    action_attributes,
    context_attributes,
    param_attributes,
    result_attributes,
)
from awp_publish.plugins.templating.catalog import AWAS, HasCatalog, P, Style
from awp_publish.plugins.templating.links import agents_script, head_links, robots_lines, webmcp_hash, webmcp_script
from awp_publish.plugins.templating.metadata import page_meta, structured_data, structured_result


def install(
    environment: "Environment",
    site: HasCatalog,
    *,
    styles: Sequence[Style] = AWAS,
    protocols: Sequence[Published] | None = None,
) -> None:
    """Add functions to a Jinja environment: `awas_action`, `awas_param`, `awas_context`, `awas_result`, `head_links`,
    and under their own names `page_meta`, `structured_data`, `structured_result`, `webmcp_script`, `webmcp_hash`,
    `robots_lines` and `agents_script`.

    Needs the extra `awp-publish[jinja]`, and raises DeclarationError without it. The site's catalog is read when a
    template is rendered, after it was frozen.
    """
    try:
        from markupsafe import Markup
    except ImportError as error:
        raise DeclarationError("templates", "need jinja2.", 'Run pip install "awp-publish[jinja]".') from error

    def awas_action(action_id: str, context: str | None = None) -> Markup:
        return Markup(action_attributes(site.catalog, action_id, styles, context))

    def awas_param(action_id: str, name: str) -> Markup:
        return Markup(param_attributes(site.catalog, action_id, name, styles))

    def awas_context(context: str) -> Markup:
        return Markup(context_attributes(context, styles))

    def awas_result(action_id: str) -> Markup:
        return Markup(result_attributes(site.catalog, action_id, styles))

    def of_site(function: Callable[Concatenate[Catalog, P], str]) -> Callable[P, Markup]:
        def write(*args: P.args, **kwargs: P.kwargs) -> Markup:
            return Markup(function(site.catalog, *args, **kwargs))

        return write

    for function in (awas_action, awas_param, awas_context, awas_result):
        environment.globals[function.__name__] = function
    environment.globals |= {
        "head_links": of_site(partial(head_links, protocols=protocols)),
        "robots_lines": of_site(robots_lines),
        "page_meta": of_site(page_meta),
        "structured_data": of_site(structured_data),
        "structured_result": of_site(structured_result),
        "agents_script": of_site(agents_script),
        "webmcp_script": of_site(webmcp_script),
        "webmcp_hash": of_site(webmcp_hash),
    }
