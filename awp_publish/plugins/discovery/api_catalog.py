"""RFC 9727: api-catalog, a linkset (RFC 9264)."""

from typing import Final

from awp_publish.documents.members import AGENT_JSON_PATH, LLMS_TXT_PATH, WOA_PATH, WOA_TYPE, absolute_if, present
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Catalog

API_CATALOG_PATH: Final = "/.well-known/api-catalog"

API_CATALOG_TYPE: Final = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'


def render_api_catalog(catalog: Catalog) -> dict[str, object]:
    """Return the linkset: what describes the site's interfaces, for machines and for people, and its status."""
    described = [{"href": catalog.absolute(WOA_PATH), "type": WOA_TYPE}] if catalog.publishes("woa") else []
    if catalog.publishes("agent_json"):
        described.append({"href": catalog.absolute(AGENT_JSON_PATH), "type": "application/json"})
    if catalog.openapi is not None:
        described.insert(0, {"href": catalog.absolute(catalog.openapi.path), "type": "application/json"})
    documentation = absolute_if(catalog, catalog.site.documentation)
    explained = {"href": catalog.absolute(LLMS_TXT_PATH), "type": "text/plain"}
    context = {
        "anchor": catalog.url + "/",
        "service-desc": described or None,
        "service-doc": [{"href": documentation, "type": "text/html"}] if documentation else None,
        "describedby": [explained] if catalog.publishes("llms_txt") else None,
        "status": [{"href": catalog.absolute(catalog.paths.status), "type": "application/json"}],
    }
    return {"linkset": [present(context)]}


API_CATALOG: Final = Protocol(
    "api_catalog",
    documents=(Document(API_CATALOG_PATH, API_CATALOG_TYPE, to_json(render_api_catalog), rel="api-catalog"),),
)
