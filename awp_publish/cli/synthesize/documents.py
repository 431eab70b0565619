"""Both documents, marked as synthetic (agent.json, section 14)."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

import orjson

from awp_publish.cli.synthesize.observed import AGENT, InspectedSite
from awp_publish.documents.members import AGENT_JSON_PATH, AWAS_PATH
from awp_publish.model import Agent, Catalog, SiteFacts, utc_text
from awp_publish.plugin import known_protocols


def render_documents(site: InspectedSite) -> dict[str, dict[str, object]]:
    """Both documents by path, as the protocols of a site of ours would write them, without what was not seen."""
    parts = urlsplit(site.url)
    domain = parts.netloc
    actions = tuple(seen.action for seen in site.seen)
    facts = SiteFacts(name=site.title or domain, description=site.description or site.title or domain)
    agents = tuple(
        Agent(id=action.id, name=action.name, description=action.description, operations={"default": action.id})
        for action in actions
    )
    catalog = Catalog(
        url=f"{parts.scheme}://{parts.netloc}", site=facts, actions=actions, agents=agents, is_observed=True
    )
    now = utc_text(datetime.now(UTC), "seconds")
    marks: dict[str, object] = {
        "source": "synthetic",
        "generated_by": AGENT,
        "confidence": round(min(seen.confidence for seen in site.seen), 2),
        "last_verified": now,
    }
    evidence = {seen.action.id: seen for seen in site.seen}
    listed = (document for protocol in known_protocols() for document in protocol.documents)
    documents: dict[str, dict[str, object]] = {
        document.path: orjson.loads(document.render(catalog))
        for document in listed
        if document.path in (AGENT_JSON_PATH, AWAS_PATH)
    }
    for path, document in documents.items():
        # How this site refuses, what it can do besides, and how it is, was not seen.
        for member in ("errors", "agent_status", "capabilities", "$schema"):
            document.pop(member, None)
        if path == AGENT_JSON_PATH:
            document["errors"] = {}
        described = document["actions"]
        for entry in described if isinstance(described, list) else ():
            seen = evidence[str(entry["id"])]
            entry.pop("conformanceLevel", None)
            entry["x-source"] = seen.origin
            entry["x-seen-at"] = seen.at
            entry["x-confidence"] = seen.confidence
            if seen.bound:
                entry["x-needs-from-page"] = list(seen.bound)
        (first, version), *rest = document.items()
        documents[path] = {first: version, **marks, **dict(rest)}  # it says at once what it is
    return documents
