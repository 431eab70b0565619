"""HTML from the declarations: the attributes that agents look for, and the links that point at the documents.

Everything is written from the catalog, so that page and manifest cannot disagree; a name that is not declared is an
error. The functions return plain text that is already escaped; `install` registers them with Jinja as markup.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote

import orjson

from awp_publish.model import Action, Catalog, Page
from awp_publish.problems import DeclarationError
from awp_publish.protocols import ALL, som
from awp_publish.protocols.llms_txt import markdown_address, one_line
from awp_publish.protocols.members import absolute_if, located
from awp_publish.protocols.protocol import Protocol as Published, published

if TYPE_CHECKING:
    from jinja2 import Environment

Style: TypeAlias = Literal["data-awas", "data-ai", "tool"]
"""AWAS 1.0 spells its attributes data-awas-*, AWAS 1.1 data-ai-*; WebMCP's make a form a tool. A page may carry all."""

ALTERNATE: Final = "alternate"
"""The relation of what can be read in a page's place."""

OPENAPI_TYPE: Final = "application/json"
"""What frameworks serve their OpenAPI document as."""

AWAS: Final[tuple[Style, ...]] = ("data-awas",)


class HasCatalog(Protocol):
    """A site, as far as templates are concerned."""

    @property
    def catalog(self) -> Catalog: ...


# --- Links ---


@dataclass(frozen=True, slots=True)
class _Link:
    href: str
    rel: str
    type: str
    title: str | None


def _links(catalog: Catalog, protocols: Sequence[Published]) -> Iterator[_Link]:
    for document in published(protocols, catalog):
        if document.rel is not None:
            media_type = document.media_type.split(";", 1)[0]
            yield _Link(catalog.prefix + document.path, document.rel, media_type, document.title)
    if catalog.openapi is not None:
        yield _Link(located(catalog, catalog.openapi.path), "service-desc", OPENAPI_TYPE, "OpenAPI")


def link_header(catalog: Catalog, protocols: Sequence[Published] = ALL, *, of_pages: bool = True) -> str:
    """The value of a `Link` header (RFC 8288) that points at the site's documents.

    What is an alternate of the site's pages is none of what is not one of them: then `of_pages` is False.
    """
    members: list[str] = []
    for link in _links(catalog, protocols):
        if of_pages or link.rel != ALTERNATE:
            members.append(f'<{link.href}>; rel="{link.rel}"; type="{link.type}"')
    return ", ".join(members)


def head_links(catalog: Catalog, protocols: Sequence[Published] = ALL) -> str:
    """The same as `<link>` elements for a page's head."""
    elements: list[str] = []
    for link in _links(catalog, protocols):
        title = f' title="{escape(link.title)}"' if link.title else ""
        address = f'href="{escape(link.href)}"'
        elements.append(f'<link rel="{escape(link.rel)}" type="{escape(link.type)}" {address}{title}>')
    return "\n".join(elements)


def robots_lines(catalog: Catalog) -> str:
    """What robots.txt may say of the site's pages for agents: lines that are each ended, or nothing.

    They belong to no group of user agents, so they may stand anywhere in the file.
    """
    return som.robots_lines(catalog)


def agents_script(catalog: Catalog) -> str:
    """The `<script>` element of the runtime for visitors' tabs. Raises DeclarationError without the bridge."""
    if catalog.door("bridge") is None:
        remedy = 'Write Site(doors=["bridge"]).'
        raise DeclarationError("template", "agents_script: the site does not open the bridge.", remedy)
    return f'<script src="{escape(catalog.prefix + catalog.paths.script)}" defer></script>'


# --- Structured data, and what is shown where a page is linked ---

SCHEMA_ORG: Final = "https://schema.org"


def page_meta(
    catalog: Catalog, path: str, image: str | None = None, title: str | None = None, description: str | None = None
) -> str:
    """Canonical link, other formats, Open Graph and Twitter tags of a declared page.

    `image` is the address of a picture for them. A page of several addresses ("/books/{slug}") is named by one of them,
    "/books/emma", with its own `title` and `description`; named as it is declared it has no canonical address. What a
    query shows may be named with it: "/search?q=sea".
    """
    page = _page(catalog, path, title, description)
    described = page.description or catalog.site.description
    facts = {
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
    """JSON-LD of a declared page (schema.org): the site and its search, who runs it, the page and where it stands."""
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
        trail = [one for one in _trail(catalog, page) if not one.is_template]
        items = [
            {"@type": "ListItem", "position": number, "name": one.title, "item": catalog.absolute(one.path)}
            for number, one in enumerate(trail, 1)
        ]
        graph.append({"@type": "BreadcrumbList", "itemListElement": items})
    return _json_ld({"@context": SCHEMA_ORG, "@graph": graph})


def _json_ld(value: object) -> str:
    text = orjson.dumps(value).decode().replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>'


def _page(catalog: Catalog, path: str, title: str | None = None, description: str | None = None) -> Page:
    """The declared page of a path, or of one of its addresses: with what is told of this one, where it is told."""
    address, mark, query = path.partition("?")
    for one in sorted(catalog.pages, key=lambda one: len(one.placeholders)):  # the most literal first
        pattern = r"[^/?#]+".join(re.escape(part) for part in re.split(r"\{\w+\}", one.path))
        if address == one.path or (one.is_template and re.fullmatch(pattern, address) and "{" not in address):
            exact = address if address == one.path else quote(address, safe="/%:@!$&'()*+,;=~")
            page = replace(one, path=exact + mark + query)
            break
    else:
        known = ", ".join(one.path for one in catalog.pages)
        raise DeclarationError("template", f'there is no page "{path}". There are: {known or "none"}.')
    return replace(page, title=title or page.title, description=description or page.description)


def _trail(catalog: Catalog, page: Page) -> list[Page]:
    """The declared pages above a page, the site's first page at the top, and itself."""
    above = [one for one in catalog.pages if one.path != page.path and page.path.startswith(one.path.rstrip("/") + "/")]
    return [*sorted(above, key=lambda one: len(one.path)), page]


def _search_of(catalog: Catalog) -> dict[str, object] | None:
    """The first action that searches by a query parameter, as consumers of SearchAction want it: one text."""
    for action in catalog.public.exposed_at("plain").actions:
        route = catalog.own_route(action)
        if action.type == "search" and route is not None and route.method == "GET" and route.parameters:
            first = route.parameters[0]
            if first.location == "query":
                template = f"{catalog.absolute(route.path)}?{first.wire_name}={{search_term}}"
                target = {"@type": "EntryPoint", "urlTemplate": template}
                return {"@type": "SearchAction", "target": target, "query-input": "required name=search_term"}
    return None


# --- Attributes ---


def action_attributes(
    catalog: Catalog, action_id: str, styles: Sequence[Style] = AWAS, context: str | None = None
) -> str:
    """Attributes of the element that performs an action: a form, a button, a link; none where agents are not told."""
    action = _action(catalog, action_id)
    if not _is_told(action):
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
    """Attributes of the control that holds an action's input `name`."""
    action = _action(catalog, action_id)
    schema = _input_schema(action, name)
    if not _is_told(action):
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
    """Attributes that say what a part of the page is about."""
    return _attributes({"data-awas": {"context": context}, "data-ai": {"content": context}, "tool": {}}, styles)


def result_attributes(catalog: Catalog, action_id: str, styles: Sequence[Style] = AWAS) -> str:
    """Attributes of the element in which an action's result appears."""
    action = _action(catalog, action_id)
    if not _is_told(action):
        return ""
    shown = {"content": "primary", "id": action.id}
    return _attributes({"data-awas": {"result": action.id}, "data-ai": shown, "tool": {}}, styles)


def _is_told(action: Action) -> bool:
    """Whether a page says of an action what everybody may read: where it is called without any envelope."""
    return action.is_public and action.is_exposed_at("plain")


def _action(catalog: Catalog, action_id: str) -> Action:
    try:
        return catalog.action(action_id)
    except KeyError:
        known = ", ".join(action.id for action in catalog.actions)
        raise DeclarationError("template", f'there is no action "{action_id}". There are: {known}.') from None


def _input_schema(action: Action, name: str) -> Mapping[str, object]:
    properties = action.inputs.get("properties")
    if not isinstance(properties, Mapping) or name not in properties:
        known = ", ".join(properties) if isinstance(properties, Mapping) else "none"
        raise DeclarationError("template", f'action "{action.id}" has no input "{name}". There are: {known}.')
    schema = properties[name]
    return schema if isinstance(schema, Mapping) else {}


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
    protocols: Sequence[Published] = ALL,
) -> None:
    """Add `awas_action`, `awas_param`, `awas_context` and `awas_result`, `head_links`, `page_meta`, `structured_data`,
    `robots_lines` and `agents_script` to Jinja.

    Needs the extra `awp-publish[jinja]`. The site is read when a template is rendered, after it was frozen.
    """
    from markupsafe import Markup

    def awas_action(action_id: str, context: str | None = None) -> Markup:
        return Markup(action_attributes(site.catalog, action_id, styles, context))

    def awas_param(action_id: str, name: str) -> Markup:
        return Markup(param_attributes(site.catalog, action_id, name, styles))

    def awas_context(context: str) -> Markup:
        return Markup(context_attributes(context, styles))

    def awas_result(action_id: str) -> Markup:
        return Markup(result_attributes(site.catalog, action_id, styles))

    def site_head_links() -> Markup:
        return Markup(head_links(site.catalog, protocols))

    def site_robots_lines() -> Markup:
        return Markup(robots_lines(site.catalog))

    def site_page_meta(
        path: str, image: str | None = None, title: str | None = None, description: str | None = None
    ) -> Markup:
        return Markup(page_meta(site.catalog, path, image, title, description))

    def site_structured_data(path: str, title: str | None = None) -> Markup:
        return Markup(structured_data(site.catalog, path, title))

    def site_agents_script() -> Markup:
        return Markup(agents_script(site.catalog))

    for function in (awas_action, awas_param, awas_context, awas_result):
        environment.globals[function.__name__] = function
    environment.globals["head_links"] = site_head_links
    environment.globals["robots_lines"] = site_robots_lines
    environment.globals["page_meta"] = site_page_meta
    environment.globals["structured_data"] = site_structured_data
    environment.globals["agents_script"] = site_agents_script
