"""Operations of a site's OpenAPI document as actions."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urljoin, urlsplit

import orjson
from awp_publish_openapi.components import Components
from awp_publish_openapi.operations import read_operation

from awp_publish.cli.fetching import FetchedDocument, FetchRefused
from awp_publish.cli.synthesize.observed import InspectedSite, Seen, id_of, is_here, short
from awp_publish.declare.actions import EFFECTS
from awp_publish.model import Action, Target
from awp_publish.problems import DeclarationError
from awp_publish.schema.parts import as_object, as_objects

OF_OPENAPI: Final = 0.9
"""Confidence in an action that the site describes."""

PATHS: Final = ("/openapi.json", "/api/openapi.json", "/swagger.json")


def read_openapi(site: InspectedSite, get: Callable[[str, str], FetchedDocument], address: str) -> bool:
    """Add the operations of an OpenAPI document. Returns True if there is one."""
    try:
        document = orjson.loads(get(address, "application/json").body)
    except (FetchRefused, ValueError):
        return False
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        return False
    servers = as_objects(document.get("servers"))
    base = urljoin(address, str(servers[0].get("url", "/"))) if servers else urljoin(address, "/")
    if not is_here(base, site.url):
        site.left_out.append((address, f"its server is another site: {base[:120]}"))
        return True
    prefix = urlsplit(base).path.rstrip("/")
    components = Components(document)
    for path, item in as_object(document.get("paths")).items():
        for method in ("get", "post", "put", "patch", "delete"):
            operation = as_object(as_object(item).get(method))
            if not operation or operation.get("deprecated") is True or not str(path).startswith("/"):
                continue
            shared = as_objects(as_object(item).get("parameters"))
            merged = {**operation, "parameters": [*shared, *as_objects(operation.get("parameters"))]}
            try:
                described = read_operation(merged, components, f"{prefix}{path}", document.get("security"))
            except (ValueError, KeyError, TypeError, AttributeError, DeclarationError) as error:
                site.left_out.append((address, f"{method.upper()} {path} cannot be read: {error}"))
                continue
            words = short(described.description or described.summary or f"{method.upper()} {path}")
            action = Action(
                id=id_of(described.operation_id or f"{method}_{path}", "operation"),
                agent_id="",
                name=short(described.summary or described.operation_id or f"{method.upper()} {path}"),
                description=words,
                inputs=described.inputs,
                outputs=described.outputs or {},
                target=Target(method.upper(), f"{prefix}{path}", described.parameters, described.content_type),
                type="data_retrieval" if method == "get" else "state_change",
                effect=EFFECTS[method.upper()],
                asker="scheme" if described.auth_required else None,
                success_status=described.success_status,
            )
            site.add(Seen(action, address, OF_OPENAPI, "openapi"))
    return True
