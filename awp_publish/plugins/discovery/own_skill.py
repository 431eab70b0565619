"""Where the skill is that is made of a site's own actions."""

import re
from typing import Final

from awp_publish.model import MAX_SKILL_NAME, SKILL_FILE, Catalog, without_accents

SKILLS: Final = "/.well-known/agent-skills"
"""The path below which all skills are."""


def skill_name(catalog: Catalog) -> str:
    """Return the name of the site's own skill: lower-case letters, digits and single hyphens."""
    for text in (catalog.site.name, catalog.domain):
        if name := re.sub(r"[^a-z0-9]+", "-", without_accents(text)).strip("-")[:MAX_SKILL_NAME].strip("-"):
            return name
    return "site"


def skill_path(catalog: Catalog) -> str:
    """Return the path of the site's own skill."""
    return f"{SKILLS}/{skill_name(catalog)}/{SKILL_FILE}"
