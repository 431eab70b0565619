"""The protocols a site speaks: pure renderers, catalog in, bytes out."""

from awp_publish.protocols.actions_json import PROTOCOL as ACTIONS_JSON
from awp_publish.protocols.agent_card import PROTOCOL as AGENT_CARD
from awp_publish.protocols.agent_json import PROTOCOL as AGENT_JSON
from awp_publish.protocols.agent_skills import PROTOCOL as AGENT_SKILLS
from awp_publish.protocols.awas import A2A_MANIFEST, MCP_MANIFEST, PROTOCOL as AWAS, SCHEMAS_PROTOCOL as SCHEMAS
from awp_publish.protocols.catalogues import API_CATALOG, ARD, MCP_SERVERS
from awp_publish.protocols.crawling import AUTH_MD, ROBOTS, SECURITY, SITEMAP
from awp_publish.protocols.llms_txt import PROTOCOL as LLMS_TXT
from awp_publish.protocols.mcp_server_card import PROTOCOL as MCP_SERVER_CARD
from awp_publish.protocols.protected_resource import PROTOCOL as PROTECTED_RESOURCE
from awp_publish.protocols.protocol import Protocol
from awp_publish.protocols.som import PROTOCOL as SOM
from awp_publish.protocols.webmcp import PROTOCOL as WEBMCP
from awp_publish.protocols.woa import PROTOCOL as WOA

ALL: tuple[Protocol, ...] = (
    AWAS,
    SCHEMAS,
    AGENT_JSON,
    WOA,
    MCP_MANIFEST,
    MCP_SERVER_CARD,
    A2A_MANIFEST,
    AGENT_CARD,
    PROTECTED_RESOURCE,
    ACTIONS_JSON,
    SOM,
    LLMS_TXT,
    AGENT_SKILLS,
    API_CATALOG,
    ARD,
    MCP_SERVERS,
    ROBOTS,
    SITEMAP,
    SECURITY,
    AUTH_MD,
    WEBMCP,
)
