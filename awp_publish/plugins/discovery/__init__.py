"""Discovery: llms.txt, catalogues of interfaces, robots and sitemaps, the skills index, WebMCP."""

import logging
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from awp_publish.checks.urls import is_loopback
from awp_publish.http.running import INSPECTED
from awp_publish.model import Catalog
from awp_publish.plugin import Document, Plugin, Serving, Setup
from awp_publish.plugins.discovery import agent_skills, llms_txt
from awp_publish.plugins.discovery.api_catalog import API_CATALOG
from awp_publish.plugins.discovery.ard import ARD
from awp_publish.plugins.discovery.auth_md import AUTH_MD
from awp_publish.plugins.discovery.dns import DNS
from awp_publish.plugins.discovery.options import Discovery
from awp_publish.plugins.discovery.robots import ROBOTS, agentmap_line
from awp_publish.plugins.discovery.security_txt import SECURITY
from awp_publish.plugins.discovery.sitemaps import SITEMAP, has_sitemap
from awp_publish.plugins.discovery.webmcp import PROTOCOL as WEBMCP

logger: Final = logging.getLogger("awp_publish")


@dataclass(frozen=True, slots=True)
class Guides:
    """What discovery tells other plug-ins of the site's documents, and whether robots.txt has lines of proposals."""

    robots_proposals: bool

    introductions: ClassVar = tuple(document for protocol in (ARD, ROBOTS, SITEMAP) for document in protocol.documents)
    """Documents for discovering a site: a client that is connected has done that already."""

    skills_of = staticmethod(agent_skills.skills_of)
    digest_of = staticmethod(agent_skills.digest_of)
    media_type_of = staticmethod(agent_skills.media_type_of)
    pages_of = staticmethod(llms_txt.listed_pages)

    def is_own_skill(self, document: Document) -> bool:
        """Return True for the document with the skill that is made of the site's actions."""
        return document.render is agent_skills.render_skill

    def guides_of(self, catalog: Catalog) -> tuple[str | None, str | None]:
        """Return the addresses of llms.txt and of the sitemap in Markdown, None for what is not published."""
        llms = catalog.absolute(llms_txt.PATH) if catalog.publishes("llms_txt") else None
        return llms, catalog.absolute(llms_txt.SITEMAP_MD_PATH) if has_sitemap(catalog) else None


def _running(serving: Serving) -> AbstractAsyncContextManager[object]:
    """Log, when a site that is developed starts, what only its owner can say and crawlers look for."""
    catalog = serving.site.catalog
    is_read = INSPECTED in serving.application.extensions()
    if not is_read and is_loopback(catalog.domain) and (unsaid := list(_unsaid(catalog))):
        logger.warning("Only you can supply what agents and crawlers also look for: %s.", ", ".join(unsaid))
    return nullcontext()


def _unsaid(catalog: Catalog) -> Iterator[str]:
    site = catalog.site
    if has_sitemap(catalog) and site.updated is None:
        yield "About(updated=...)"
    if site.contact is None:
        yield "About(email=...)"
    if site.security is None:
        yield "Discovery(security=Security(...))"
    if has_sitemap(catalog) and not site.robots.content_signal:
        yield "Robots(content_signal={...})"


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    lines = (agentmap_line,) if setup.options.robots_proposals else ()
    site = replace(catalog.site, robots=setup.options.robots, security=setup.options.security)
    return replace(catalog, site=site, robots_lines=(*catalog.robots_lines, *lines))


PLUGIN = Plugin(
    name="discovery",
    options=Discovery,
    is_default=True,
    derive=_derive,
    running=_running,
    start=lambda setup: Guides(setup.options.robots_proposals),
    documents=(
        llms_txt.PROTOCOL,
        agent_skills.PROTOCOL,
        API_CATALOG,
        ARD,
        ROBOTS,
        SITEMAP,
        SECURITY,
        AUTH_MD,
        WEBMCP,
    ),
    commands={"dns": DNS},
)
