"""Links and scripts for the head of a page."""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape

import orjson

from awp_publish.documents.links import ALTERNATE, OPENAPI_TYPE, links_of
from awp_publish.documents.members import LLMS_TXT_PATH, located
from awp_publish.documents.protocol import Document, Protocol as Published, published, views_of
from awp_publish.documents.som_robots import robots_lines_of
from awp_publish.model import Catalog
from awp_publish.plugin import known_protocols
from awp_publish.plugins.templating.metadata import find_page, page_meta, structured_data
from awp_publish.problems import DeclarationError


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
        title_attribute = f' title="{escape(link.title)}"' if link.title else ""
        address = f'href="{escape(link.href)}"'
        elements.append(f'<link rel="{escape(link.rel)}" type="{escape(link.type)}" {address}{title_attribute}>')
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
    directory = _document(catalog, "som")
    return robots_lines_of(orjson.loads(_render(catalog, directory))) if directory is not None else ""


def agents_script(catalog: Catalog, nonce: str | None = None) -> str:
    """Return the `<script>` element of the runtime for visitors' tabs. Raises DeclarationError without the bridge."""
    if catalog.door("bridge") is None:
        remedy = 'Write Site(plugins=["bridge"]).'
        raise DeclarationError("template", "agents_script: the site does not open the bridge.", remedy)
    return f'<script src="{escape(catalog.prefix + catalog.paths.script)}" defer{nonce_attribute(nonce)}></script>'


def webmcp_script(catalog: Catalog, nonce: str | None = None, integrity: bool = False) -> str:
    """Return the `<script>` element that makes the site's actions tools of the page; "" if the site has no such script.

    `nonce` is that of the response's Content-Security-Policy. With `integrity` the browser runs the script only if it
    has its present bytes; a policy can then allow it by `webmcp_hash` in `script-src`.
    """
    script = _document(catalog, "webmcp")
    if script is None:
        return ""
    fixed = f' integrity="{webmcp_hash(catalog)}"' if integrity else ""
    address = escape(catalog.prefix + script.path_in(catalog))
    return f'<script type="module" src="{address}"{fixed}{nonce_attribute(nonce)}></script>'


def webmcp_hash(catalog: Catalog) -> str:
    """Return the hash of the script of the page's tools, in the form of policies and `integrity`: `sha384-...`."""
    script = _document(catalog, "webmcp")
    if script is None:
        raise DeclarationError("template", "webmcp_hash: the site has no such script.")
    digest = hashlib.sha384(_render(catalog, script)).digest()
    return f"sha384-{b64encode(digest).decode()}"


def nonce_attribute(nonce: str | None) -> str:
    return f' nonce="{escape(nonce)}"' if nonce is not None else ""


def _document(catalog: Catalog, protocol: str) -> Document | None:
    """Return the document of a protocol that whichever plug-in is installed publishes, None if it is left out."""
    return next(published((candidate for candidate in known_protocols() if candidate.name == protocol), catalog), None)


def _render(catalog: Catalog, document: Document) -> bytes:
    return document.render(views_of(catalog)(document))
