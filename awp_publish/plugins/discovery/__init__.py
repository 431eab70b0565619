"""Discovery: llms.txt, catalogues of interfaces, robots and sitemaps, the skills index, WebMCP."""

from awp_publish.model import Catalog
from awp_publish.plugin import Document, Plugin, Setup
from awp_publish.plugins.discovery import agent_skills, llms_txt
from awp_publish.plugins.discovery.catalogues import API_CATALOG, ARD
from awp_publish.plugins.discovery.crawling import AUTH_MD, ROBOTS, SECURITY, SITEMAP, has_sitemap
from awp_publish.plugins.discovery.dns import DNS
from awp_publish.plugins.discovery.webmcp import PROTOCOL as WEBMCP


class Guides:
    """What discovery tells other plug-ins of the site's documents and skills."""

    introductions = tuple(document for protocol in (ARD, ROBOTS, SITEMAP) for document in protocol.documents)
    """Documents for discovering a site: a client that is connected has done that already."""

    skills_of = staticmethod(agent_skills.skills_of)
    digest_of = staticmethod(agent_skills.digest_of)
    media_type_of = staticmethod(agent_skills.media_type_of)

    def is_own_skill(self, document: Document) -> bool:
        """Return True for the document with the skill that is made of the site's actions."""
        return document.render is agent_skills.render_skill

    def guides_of(self, catalog: Catalog) -> tuple[str | None, str | None]:
        """Return the addresses of llms.txt and of the sitemap in Markdown, None for what is not published."""
        llms = catalog.absolute(llms_txt.PATH) if catalog.publishes("llms_txt") else None
        return llms, catalog.absolute(llms_txt.SITEMAP_MD_PATH) if has_sitemap(catalog) else None


def _start(setup: Setup) -> Guides:
    return Guides()


PLUGIN = Plugin(
    name="discovery",
    is_default=True,
    start=_start,
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
