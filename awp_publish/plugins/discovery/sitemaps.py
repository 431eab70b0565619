"""Sitemaps: the site's declared pages, as XML and as Markdown."""

from html import escape
from typing import Final

from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog
from awp_publish.plugins.discovery import llms_txt
from awp_publish.plugins.discovery.prose import link_text, one_line

MARKDOWN: Final = "text/markdown; charset=utf-8"

SITEMAP_PATH: Final = "/sitemap.xml"

NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


def has_pages(catalog: Catalog) -> bool:
    """Return True if there are declared pages that robots may read."""
    return bool(llms_txt.listed_pages(catalog))


def has_sitemap(catalog: Catalog) -> bool:
    return has_pages(catalog) and catalog.publishes("sitemap")


def render_sitemap(catalog: Catalog) -> bytes:
    """Return sitemap.xml (sitemaps.org protocol 0.9): the declared pages."""
    updated = catalog.site.updated
    modified = f"<lastmod>{updated.date().isoformat()}</lastmod>" if updated is not None else ""
    urls = [
        f"<url><loc>{escape(catalog.absolute(page.path))}</loc>{modified}</url>"
        for page in llms_txt.listed_pages(catalog)
    ]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NAMESPACE}">{"".join(urls)}</urlset>\n'.encode()


def render_sitemap_md(catalog: Catalog) -> bytes:
    """Return sitemap.md: a link for each declared page, to its Markdown if there is one."""
    listed = llms_txt.page_links(catalog) or [
        f"- [{link_text(page.title)}]({catalog.absolute(page.path)})" for page in llms_txt.listed_pages(catalog)
    ]
    return "\n".join([f"# Sitemap of {one_line(catalog.site.name)}", "", *listed, ""]).encode()


SITEMAP: Final = Protocol(
    "sitemap",
    documents=(
        Document(SITEMAP_PATH, "application/xml", render_sitemap, condition=has_pages, is_fallback=True),
        Document(llms_txt.SITEMAP_MD_PATH, MARKDOWN, render_sitemap_md, condition=has_pages, is_fallback=True),
    ),
)
