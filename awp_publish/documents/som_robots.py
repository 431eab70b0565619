"""Lines of robots.txt about a site's SOM documents: Plasmate's proposal "Robots.txt for the Agentic Web"."""

from collections.abc import Mapping
from typing import Final

DIRECTIVES: Final = {
    "SOM-Endpoint": "endpoint",
    "SOM-Format": "format",
    "SOM-Scope": "scope",
    "SOM-Freshness": "freshness_seconds",
}
"""Directive to the member of the directory of SOM documents that has its value."""


def robots_lines_of(directory: Mapping[str, object]) -> str:
    """Return the lines for a directory. The endpoint is open to everybody and takes no credentials."""
    lines = {name: directory[member] for name, member in DIRECTIVES.items() if member in directory}
    return "".join(f"{name}: {value}\n" for name, value in {**lines, "SOM-Auth": "none"}.items())
