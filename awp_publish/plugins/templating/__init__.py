"""HTML made from the declarations: attributes that agents look for, and links to the documents.

Everything is read from the catalog, so that page and manifest cannot disagree, and an undeclared name is an error. The
functions return plain text that is already escaped; `install` registers them with Jinja as markup.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Concatenate, Final, Literal, ParamSpec, Protocol, TypeAlias
from urllib.parse import quote

import orjson
from pydantic_core import PydanticSerializationError, to_jsonable_python

from awp_publish.documents.links import ALTERNATE, OPENAPI_TYPE, link_header as link_header, links_of
from awp_publish.documents.members import LLMS_TXT_PATH, absolute_if, located, one_line
from awp_publish.documents.protocol import Protocol as Published, published, views_of
from awp_publish.model import SAFE_IN_PATH, Action, Catalog, Page
from awp_publish.plugin import known_protocols
from awp_publish.plugins.discovery import webmcp
from awp_publish.plugins.discovery.llms_txt import markdown_address
from awp_publish.plugins.pages import som
from awp_publish.problems import DeclarationError
from awp_publish.schema.reading import members, object_facts, resolved

if TYPE_CHECKING:
    from jinja2 import Environment

Style: TypeAlias = Literal["data-awas", "data-ai", "tool"]
"""AWAS 1.0's attributes are data-awas-*, AWAS 1.1's data-ai-*; WebMCP's make a form a tool. A page may have all."""

P = ParamSpec("P")

AWAS: Final[tuple[Style, ...]] = ("data-awas",)


class HasCatalog(Protocol):
    """The part of a site that templates need."""

    @property
    def catalog(self) -> Catalog: ...


# --- Links ---


def head_links(
    catalog: Catalog,
    protocols: Sequence[Published] | None = None,
    *,
    path: str | None = None,
    image: str | None = None,
    title: str | None = None,
    description: str | None = None,
    nonce: str | None = None,
) -> str:
    """Return the links of `link_header` as `<link>` elements for a page's head.

    With the `path` of the page (that of its request, for instance), this is all that agents and search engines look for
    in a head: a comment that points at llms.txt, the links, `page_meta` and `structured_data` of a page that is known,
    and `webmcp_script`. `image`, `title` and `description` are those of `page_meta`, `nonce` is for the scripts.
    """
    elements: list[str] = []
    if path is not None and catalog.publishes("llms_txt"):
        address = catalog.prefix + LLMS_TXT_PATH
        elements.append(f"<!-- For agents: {escape(address)} lists the pages and actions of this site. -->")
        elements.append(f'<link rel="{ALTERNATE}" type="text/plain" href="{escape(address)}" title="llms.txt">')
    if path is not None and catalog.openapi is not None:  # as checkers look for it, beside the `service-desc` below
        address = escape(located(catalog, catalog.openapi.path))
        elements.append(f'<link rel="{ALTERNATE}" type="{OPENAPI_TYPE}" href="{address}" title="OpenAPI">')
    for link in links_of(catalog, known_protocols() if protocols is None else protocols):
        named = f' title="{escape(link.title)}"' if link.title else ""
        address = f'href="{escape(link.href)}"'
        elements.append(f'<link rel="{escape(link.rel)}" type="{escape(link.type)}" {address}{named}>')
    if path is not None:
        path = path.removeprefix(catalog.prefix) or "/"
        if find_page(catalog, path) is not None:
            elements.append(page_meta(catalog, path, image, title, description))
            elements.append(structured_data(catalog, path, title))
        elements.append(webmcp_script(catalog, nonce))
    return "\n".join(filter(None, elements))


def robots_lines(catalog: Catalog) -> str:
    """Return the lines of robots.txt about the formats for agents, each with a line break; "" if there are none.

    They belong to no group of user agents, so they may be anywhere in the file.
    """
    return som.robots_lines(catalog)


def agents_script(catalog: Catalog, nonce: str | None = None) -> str:
    """Return the `<script>` element of the runtime for visitors' tabs. Raises DeclarationError without the bridge."""
    if catalog.door("bridge") is None:
        remedy = 'Write Site(doors=["bridge"]).'
        raise DeclarationError("template", "agents_script: the site does not open the bridge.", remedy)
    return f'<script src="{escape(catalog.prefix + catalog.paths.script)}" defer{_nonce(nonce)}></script>'


def webmcp_script(catalog: Catalog, nonce: str | None = None, integrity: bool = False) -> str:
    """Return the `<script>` element that makes the site's actions tools of the page; "" if the site has no such script.

    `nonce` is that of the response's Content-Security-Policy. With `integrity` the browser runs the script only if it
    has its present bytes; a policy can then allow it by `webmcp_hash` in `script-src`.
    """
    if not list(published([webmcp.PROTOCOL], catalog)):
        return ""
    fixed = f' integrity="{webmcp_hash(catalog)}"' if integrity else ""
    address = escape(catalog.prefix + webmcp.address_of(catalog))
    return f'<script type="module" src="{address}"{fixed}{_nonce(nonce)}></script>'


def webmcp_hash(catalog: Catalog) -> str:
    """Return the hash of the script of the page's tools, in the form of policies and `integrity`: `sha384-...`."""
    (document,) = webmcp.PROTOCOL.documents
    digest = hashlib.sha384(document.render(views_of(catalog)(document))).digest()
    return f"sha384-{b64encode(digest).decode()}"


def _nonce(nonce: str | None) -> str:
    return f' nonce="{escape(nonce)}"' if nonce is not None else ""


# --- Structured data, and metadata for previews of links ---

SCHEMA_ORG: Final = "https://schema.org"


def page_meta(
    catalog: Catalog, path: str, image: str | None = None, title: str | None = None, description: str | None = None
) -> str:
    """Return the canonical link, links to other formats, and Open Graph and Twitter tags of a declared page.

    `image` is the address of a picture for them. For a page with several addresses ("/books/{slug}"), pass one of them,
    "/books/emma", with its own `title` and `description`; the template itself has no canonical address. A path may
    include a query, if the page depends on it: "/search?q=sea".
    """
    page = _page(catalog, path, title, description)
    described = page.description or catalog.site.description
    facts = {
        "author": catalog.site.name,
        "og:type": "website",
        "og:site_name": catalog.site.name,
        "og:title": page.title,
        "og:description": one_line(described),
        "og:url": None if page.is_template else catalog.absolute(page.path),
        "og:image": absolute_if(catalog, image),
        "twitter:card": "summary_large_image" if image else "summary",
        "twitter:title": page.title,
        "twitter:description": one_line(described),
        "twitter:image": absolute_if(catalog, image),
    }
    elements = [
        f'<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{escape(value)}">'
        for name, value in facts.items()
        if value is not None
    ]
    if not page.is_template:
        addresses = [("canonical", "", catalog.absolute(page.path))]
        if som.is_published(catalog):
            addresses.append((ALTERNATE, "text/markdown", markdown_address(catalog, page)))
            addresses.append((ALTERNATE, som.MEDIA_TYPE, f"{som.endpoint_of(catalog)}?url={quote(page.path)}"))
        links = (
            f'<link rel="{rel}" type="{kind}" href="{escape(address)}">'.replace(' type=""', "")
            for rel, kind, address in addresses
        )
        elements = [*links, *elements]
    return "\n".join(elements)


def structured_data(catalog: Catalog, path: str, title: str | None = None) -> str:
    """Return JSON-LD of a declared page (schema.org): the site, its search and owner, the page and its breadcrumbs."""
    site, page, root = catalog.site, _page(catalog, path, title), catalog.url + "/"
    website: dict[str, object] = {"@type": "WebSite", "@id": f"{root}#site", "url": root, "name": site.name}
    website["description"] = one_line(site.description)
    if (search := _search_of(catalog)) is not None:
        website["potentialAction"] = search
    owner: dict[str, object] = {"@type": "Organization", "@id": f"{root}#owner", "name": site.name, "url": root}
    if site.contact is not None and site.contact.email is not None:
        owner["email"] = site.contact.email
    graph = [website | {"publisher": {"@id": owner["@id"]}}, owner]
    if not page.is_template:
        address = catalog.absolute(page.path)
        shown: dict[str, object] = {"@type": "WebPage", "url": address, "name": page.title}
        shown["isPartOf"] = {"@id": website["@id"]}
        if site.updated is not None:
            shown["dateModified"] = site.updated.isoformat()
        graph.append(shown)
        # The declared pages above this one, beginning with the site's first page, and the page itself.
        parts = [one for one in catalog.pages if one.path != page.path and not one.is_template]
        above = [one for one in parts if page.path.startswith(one.path.rstrip("/") + "/")]
        trail = [*sorted(above, key=lambda one: len(one.path)), page]
        items = [
            {"@type": "ListItem", "position": number, "name": one.title, "item": catalog.absolute(one.path)}
            for number, one in enumerate(trail, 1)
        ]
        graph.append({"@type": "BreadcrumbList", "itemListElement": items})
    return _json_ld({"@context": SCHEMA_ORG, "@graph": graph})


def structured_result(catalog: Catalog, action_id: str, result: object) -> str:
    """Return JSON-LD of an action's result, for the page that shows it; "" if agents may not see the action.

    A form that is a tool (the style "tool") gives agents the JSON-LD of the page to which it leads. `result` is what
    the handler returns to programs: a model, a dataclass or plain JSON values. Members that the action's outputs do not
    declare are left out.
    """
    action = _action(catalog, action_id)
    if not _is_visible(action):
        return ""
    try:
        value = to_jsonable_python(result, by_alias=True)
    except PydanticSerializationError as error:
        raise DeclarationError("template", f'the result of action "{action_id}" is not JSON: {error}.') from error
    return _json_ld(
        {
            # The result is a JSON literal (JSON-LD 1.1 section 4.2.2), not terms of the vocabulary.
            "@context": [SCHEMA_ORG, {"result": {"@id": f"{SCHEMA_ORG}/result", "@type": "@json"}}],
            "@type": "SearchAction" if action.type == "search" else "Action",
            "identifier": action.id,
            "name": action.name,
            "actionStatus": f"{SCHEMA_ORG}/CompletedActionStatus",
            "result": _as_declared(value, action.outputs, action.outputs),
        }
    )


def _as_declared(value: object, schema: object, root: Mapping[str, object]) -> object:
    facts = object_facts(resolved(schema, root), root)
    if isinstance(value, list):
        return [_as_declared(one, facts.get("items"), root) for one in value]
    named = members(facts)
    if not isinstance(value, dict) or not named:
        return value
    return {name: _as_declared(one, named[name], root) for name, one in value.items() if name in named}


def _json_ld(value: object) -> str:
    text = orjson.dumps(value).decode().replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>'


def _page(catalog: Catalog, path: str, title: str | None = None, description: str | None = None) -> Page:
    """Return the declared page of a path, or of one of its addresses, with its own title and description if given."""
    page = find_page(catalog, path)
    if page is None:
        known = ", ".join(one.path for one in catalog.pages)
        raise DeclarationError("template", f'there is no page "{path}". There are: {known or "none"}.')
    return replace(page, title=title or page.title, description=description or page.description)


def find_page(catalog: Catalog, path: str) -> Page | None:
    """Return the declared page at a path, with that path, or None."""
    address, mark, query = path.partition("?")
    for one in sorted(catalog.pages, key=lambda one: len(one.placeholders)):  # those with the fewest placeholders first
        pattern = r"[^/?#]+".join(re.escape(part) for part in re.split(r"\{\w+\}", one.path))
        if address == one.path or (one.is_template and re.fullmatch(pattern, address) and "{" not in address):
            exact = address if address == one.path else quote(address, safe=SAFE_IN_PATH)
            return replace(one, path=exact + mark + query)
    return None


def _search_of(catalog: Catalog) -> dict[str, object] | None:
    """Return the first action that searches by a text in the query, as a SearchAction, or None.

    Its target is the action's route, if a declared page is there or any client may call it.
    """
    pages = {page.path for page in catalog.pages}
    for action in catalog.public.exposed_at("plain").actions:
        route = action.target if action.target is not None and action.target.path in pages else None
        route = route or catalog.own_route(action)
        is_search = action.type == "search" or re.match(r"(search|find)(_|$)", action.id)
        if not is_search or route is None or route.method != "GET" or "{" in route.path:
            continue
        inputs = members(object_facts(action.inputs, action.inputs))
        for parameter in route.parameters:
            facts = resolved(inputs.get(parameter.name), action.inputs)
            if parameter.location == "query" and facts.get("type") == "string" and "enum" not in facts:
                template = f"{catalog.absolute(route.path)}?{parameter.wire_name}={{search_term}}"
                target = {"@type": "EntryPoint", "urlTemplate": template}
                return {"@type": "SearchAction", "target": target, "query-input": "required name=search_term"}
    return None


# --- Attributes ---


def action_attributes(
    catalog: Catalog, action_id: str, styles: Sequence[Style] = AWAS, context: str | None = None
) -> str:
    """Return the attributes of an element that performs an action, such as a form; "" for actions hidden from
    agents.
    """
    action = _action(catalog, action_id)
    if not _is_visible(action):
        return ""
    method, path = catalog.endpoint_of(action)
    names: dict[Style, dict[str, object]] = {
        "data-awas": {"action": action.id, "context": context},
        "data-ai": {
            "action": action.id,
            "action-type": action.type,
            "endpoint": catalog.prefix + path,
            "method": method,
            "intent": action.intent,
            "entity": context,
        },
        "tool": {
            "name": action.id,
            "description": one_line(action.description),
            "autosubmit": "" if action.effect == "read" else None,
        },
    }
    return _attributes(names, styles)


def param_attributes(catalog: Catalog, action_id: str, name: str, styles: Sequence[Style] = AWAS) -> str:
    """Return the attributes of the control for an action's input `name`."""
    action = _action(catalog, action_id)
    properties = action.inputs.get("properties")
    if not isinstance(properties, Mapping) or name not in properties:
        known = ", ".join(properties) if isinstance(properties, Mapping) else "none"
        raise DeclarationError("template", f'action "{action.id}" has no input "{name}". There are: {known}.')
    schema = properties[name] if isinstance(properties[name], Mapping) else {}
    if not _is_visible(action):
        return ""
    required = action.inputs.get("required")
    names: dict[Style, dict[str, object]] = {
        "data-awas": {"param": name},
        "data-ai": {
            "param": name,
            "param-type": schema.get("type"),
            "param-required": isinstance(required, list) and name in required,
            "param-default": schema.get("default"),
        },
        "tool": {"paramdescription": schema.get("description") or schema.get("title") or name},
    }
    return _attributes(names, styles)


def context_attributes(context: str, styles: Sequence[Style] = AWAS) -> str:
    """Return attributes that say what a part of the page is about."""
    return _attributes({"data-awas": {"context": context}, "data-ai": {"content": context}, "tool": {}}, styles)


def result_attributes(catalog: Catalog, action_id: str, styles: Sequence[Style] = AWAS) -> str:
    """Return the attributes of the element in which an action's result appears."""
    action = _action(catalog, action_id)
    if not _is_visible(action):
        return ""
    shown = {"content": "primary", "id": action.id}
    return _attributes({"data-awas": {"result": action.id}, "data-ai": shown, "tool": {}}, styles)


def _is_visible(action: Action) -> bool:
    """Return True if pages may mention an action: everybody may call it, without an envelope."""
    return action.is_public and action.is_exposed_at("plain")


def _action(catalog: Catalog, action_id: str) -> Action:
    try:
        return catalog.action(action_id)
    except KeyError:
        known = ", ".join(action.id for action in catalog.actions)
        raise DeclarationError("template", f'there is no action "{action_id}". There are: {known}.') from None


def _attributes(names: Mapping[Style, Mapping[str, object]], styles: Iterable[Style]) -> str:
    written: list[str] = []
    for style in styles:
        for name, value in names[style].items():
            if isinstance(value, (str, int, float)):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                joined = style + name if style == "tool" else f"{style}-{name}"
                written.append(f'{joined}="{escape(text)}"')
    return " ".join(written)


# --- Jinja ---


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
