"""The documents of the specifications that every site speaks: pure renderers, catalog in, bytes out."""

from awp_publish.documents.agent_json import PROTOCOL as AGENT_JSON
from awp_publish.documents.awas import PROTOCOL as AWAS
from awp_publish.documents.awas_manifests import A2A_MANIFEST as A2A, MCP_MANIFEST as MCP
from awp_publish.documents.awas_schemas import SCHEMAS_PROTOCOL as SCHEMAS
from awp_publish.documents.protocol import Protocol
from awp_publish.documents.woa import PROTOCOL as WOA

CORE: tuple[Protocol, ...] = (AWAS, SCHEMAS, AGENT_JSON, WOA, MCP, A2A)
