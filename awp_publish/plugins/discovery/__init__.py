"""Discovery: llms.txt, catalogues of interfaces, robots and sitemaps, the skills index, WebMCP."""

from awp_publish.model import Catalog, Page
from awp_publish.plugin import Plugin, Setup
from awp_publish.plugins.discovery import llms_txt
from awp_publish.plugins.discovery.agent_skills import PROTOCOL as AGENT_SKILLS
from awp_publish.plugins.discovery.catalogues import API_CATALOG, ARD
from awp_publish.plugins.discovery.crawling import AUTH_MD, ROBOTS, SECURITY, SITEMAP, has_sitemap
from awp_publish.plugins.discovery.webmcp import PROTOCOL as WEBMCP


class Guides:
    """What discovery tells other plug-ins of the site's documents."""

    def guides_of(self, catalog: Catalog) -> tuple[str | None, str | None]:
        """Return the addresses of llms.txt and of the sitemap in Markdown, None for what is not published."""
        llms = catalog.absolute(llms_txt.PATH) if catalog.publishes("llms_txt") else None
        return llms, catalog.absolute(llms_txt.SITEMAP_MD_PATH) if has_sitemap(catalog) else None

    def pages_of(self, catalog: Catalog) -> list[Page]:
        """Return the pages that robots may read, with each address of a page whose placeholders have few values."""
        return llms_txt.listed_pages(catalog)


def _start(setup: Setup) -> Guides:
    return Guides()


PLUGIN = Plugin(
    name="discovery",
    is_default=True,
    start=_start,
    documents=(
        llms_txt.PROTOCOL,
        AGENT_SKILLS,
        API_CATALOG,
        ARD,
        ROBOTS,
        SITEMAP,
        SECURITY,
        AUTH_MD,
        WEBMCP,
    ),
)
