"""What a site says about itself: its addresses, and from checked options its `SiteFacts`."""

import os
from collections.abc import Mapping, Sequence
from typing import Final, cast
from urllib.parse import urlsplit

from awp_publish.model import Capabilities, JsonObject, RateLimit, SiteFacts
from awp_publish.options import URL, SiteOptions, check
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, write_schema

URL_VARIABLE: Final = "AWP_PUBLISH_URL"


def read_urls(given: object) -> tuple[str, ...]:
    """The site's addresses; the environment variable may hold several, separated by commas."""
    if given is None:
        listed: list[object] = [url.strip() for url in os.environ.get(URL_VARIABLE, "").split(",") if url.strip()]
    else:
        listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not listed or listed == [""]:
        raise DeclarationError("site", f"url: is required; give Site(url=...) or set {URL_VARIABLE}.")
    urls = tuple(check("site", URL, url, "url") for url in listed)
    hosts = [urlsplit(url).netloc for url in urls]
    for host in hosts:
        if hosts.count(host) > 1:
            raise DeclarationError("site", f"url: two addresses are at {host}, and requests could not tell them apart.")
    return urls


def read_site_facts(name: str, description: str, options: SiteOptions) -> SiteFacts:
    """The frozen facts of a site. Raises DeclarationError for an entity that is neither a model nor a field table."""
    entities = options.get("entities", {})
    return SiteFacts(
        name=name,
        description=description,
        version=options.get("version", "1.0"),
        contact=options.get("contact"),
        authentication=options.get("authentication"),
        rate_limit=cast(RateLimit | None, options.get("rate_limit")),
        capabilities=options.get("capabilities", Capabilities()),
        entities={key: given for key, given in entities.items() if isinstance(given, Mapping)},
        entity_schemas={key: _entity_schema(key, given) for key, given in entities.items() if isinstance(given, type)},
        errors=dict(options.get("errors", {})),
        hints=dict(options.get("hints", {})),
        security=options.get("security"),
        workflows=tuple(options.get("workflows", ())),
        documentation=options.get("documentation"),
        license=options.get("license"),
        updated=options.get("updated"),
        extensions=dict(options.get("extensions", {})),
    )


def _entity_schema(name: str, model: type) -> JsonObject:
    try:
        schema = write_schema(model, "serialization")
    except UnusableSchema as error:
        raise DeclarationError("site", f"entities.{name}: {error}.") from error
    if "properties" not in schema:
        raise DeclarationError("site", f"entities.{name}: {model.__name__} has no fields.", "Give a model.")
    return schema
