"""Structured data, and metadata for previews of links."""

import re
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Final
from urllib.parse import quote

import orjson
from pydantic_core import PydanticSerializationError, to_jsonable_python

from awp_publish.documents.links import ALTERNATE
from awp_publish.documents.members import SOM_TYPE, absolute_if, markdown_address, som_address
from awp_publish.model import SAFE_IN_PATH, Catalog, Page
from awp_publish.plugins.templating.attributes import find_action, is_visible
from awp_publish.problems import DeclarationError
from awp_publish.schema.reading import members, object_facts, resolved

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
    described = " ".join((page.description or catalog.site.description).split())
    facts = {
        "author": catalog.site.name,
        "og:type": "website",
        "og:site_name": catalog.site.name,
        "og:title": page.title,
        "og:description": described,
        "og:url": None if page.is_template else catalog.absolute(page.path),
        "og:image": absolute_if(catalog, image),
        "twitter:card": "summary_large_image" if image else "summary",
        "twitter:title": page.title,
        "twitter:description": described,
        "twitter:image": absolute_if(catalog, image),
    }
    elements = [
        f'<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{escape(value)}">'
        for name, value in facts.items()
        if value is not None
    ]
    if not page.is_template:
        addresses = [("canonical", "", catalog.absolute(page.path))]
        if catalog.door("som") is not None:
            addresses.append((ALTERNATE, "text/markdown", markdown_address(catalog, page)))
            addresses.append((ALTERNATE, SOM_TYPE, som_address(catalog, page.path)))
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
    website["description"] = " ".join(site.description.split())
    if (search := _search_of(catalog)) is not None:
        website["potentialAction"] = search
    owner: dict[str, object] = {"@type": "Organization", "@id": f"{root}#owner", "name": site.name, "url": root}
    if site.contact is not None and site.contact.email is not None:
        owner["email"] = site.contact.email
    graph = [website | {"publisher": {"@id": owner["@id"]}}, owner]
    if not page.is_template:
        address = catalog.absolute(page.path)
        webpage: dict[str, object] = {"@type": "WebPage", "url": address, "name": page.title}
        webpage["isPartOf"] = {"@id": website["@id"]}
        if site.updated is not None:
            webpage["dateModified"] = site.updated.isoformat()
        graph.append(webpage)
        # The declared pages above this one, beginning with the site's first page, and the page itself.
        parts = [other for other in catalog.pages if other.path != page.path and not other.is_template]
        above = [other for other in parts if page.path.startswith(other.path.rstrip("/") + "/")]
        trail = [*sorted(above, key=lambda other: len(other.path)), page]
        items = [
            {"@type": "ListItem", "position": number, "name": entry.title, "item": catalog.absolute(entry.path)}
            for number, entry in enumerate(trail, 1)
        ]
        graph.append({"@type": "BreadcrumbList", "itemListElement": items})
    return _json_ld({"@context": SCHEMA_ORG, "@graph": graph})


def structured_result(catalog: Catalog, action_id: str, result: object) -> str:
    """Return JSON-LD of an action's result, for the page that shows it; "" if agents may not see the action.

    A form that is a tool (the style "tool") gives agents the JSON-LD of the page to which it leads. `result` is what
    the handler returns to programs: a model, a dataclass or plain JSON values. Members that the action's outputs do not
    declare are left out.
    """
    action = find_action(catalog, action_id)
    if not is_visible(catalog, action):
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
        return [_as_declared(part, facts.get("items"), root) for part in value]
    schemas = members(facts)
    if not isinstance(value, dict) or not schemas:
        return value
    return {name: _as_declared(part, schemas[name], root) for name, part in value.items() if name in schemas}


def _json_ld(value: object) -> str:
    text = orjson.dumps(value).decode().replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>'


def _page(catalog: Catalog, path: str, title: str | None = None, description: str | None = None) -> Page:
    """Return the declared page of a path, or of one of its addresses, with its own title and description if given."""
    page = find_page(catalog, path)
    if page is None:
        paths = ", ".join(page.path for page in catalog.pages)
        raise DeclarationError("template", f'there is no page "{path}". There are: {paths or "none"}.')
    return replace(page, title=title or page.title, description=description or page.description)


def find_page(catalog: Catalog, path: str) -> Page | None:
    """Return the declared page at a path, with that path, or None."""
    address, mark, query = path.partition("?")
    for page in sorted(
        catalog.pages, key=lambda page: len(page.placeholders)
    ):  # those with the fewest placeholders first
        if address == page.path or (page.is_template and re.fullmatch(address_pattern(page), address)):
            exact = address if address == page.path else quote(address, safe=SAFE_IN_PATH)
            return replace(page, path=exact + mark + query)
    return None


def address_pattern(page: Page) -> str:
    """Return a regular expression for the addresses of a page with placeholders."""
    return r"[^/?#{]+".join(re.escape(part) for part in re.split(r"\{\w+\}", page.path))


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
