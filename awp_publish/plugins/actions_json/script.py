"""The script with which pages of the site take part in the bridge."""

from typing import Final

import orjson

from awp_publish.maps.chromium import SCRIPT
from awp_publish.model import Catalog

_CONFIGURATION: Final = b"/*SITE*/{}/*SITE*/"


def render_script(catalog: Catalog) -> bytes:
    """Return the script of visitors' tabs for one address of the site."""
    has_woa = catalog.door("woa") is not None
    facts = {
        "bridge": catalog.prefix + catalog.paths.bridge,
        "invoke": catalog.prefix + catalog.paths.invoke if has_woa else None,
        "site": catalog.site.name,
    }
    # Escape "<", so that "</script" does not end the element if a site inlines the script.
    written = orjson.dumps(facts).replace(b"<", b"\\u003c")
    return SCRIPT.read_bytes().replace(_CONFIGURATION, written)
