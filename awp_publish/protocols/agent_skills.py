"""The agent-skills index, version 0.2.0 of the discovery RFC, and the skill that says how to use the site.

A skill is a Markdown file with front matter (agentskills.io); the index has the SHA-256 of its exact bytes. Programs of
the RFC's first version look at `/.well-known/skills/index.json`. Deliberately not emitted: skills of type "archive".
"""

import hashlib
from typing import Final

from awp_publish.model import Catalog
from awp_publish.protocols.llms_txt import first_sentence, one_line, skill_name, skill_path, usage
from awp_publish.protocols.protocol import Document, Protocol, to_json

PATH: Final = "/.well-known/agent-skills/index.json"
ALIAS_PATH: Final = "/.well-known/skills/index.json"
MEDIA_TYPE: Final = "application/json"
SKILL_MEDIA_TYPE: Final = "text/markdown; charset=utf-8"
SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
LONGEST_DESCRIPTION: Final = 1024


def has_actions(catalog: Catalog) -> bool:
    """Return True for a site on which something can be done."""
    return bool(catalog.actions)


def render(catalog: Catalog) -> dict[str, object]:
    """Return the index."""
    skill = {
        "name": skill_name(catalog),
        "type": "skill-md",
        "description": _description(catalog),
        "url": catalog.prefix + skill_path(catalog),
        "digest": f"sha256:{hashlib.sha256(render_skill(catalog)).hexdigest()}",
    }
    return {"$schema": SCHEMA, "skills": [skill]}


def render_skill(catalog: Catalog) -> bytes:
    """Return SKILL.md."""
    site = catalog.site
    lines = ["---", f"name: {skill_name(catalog)}", f"description: {_quoted(_description(catalog))}", "---", ""]
    lines += [f"# {one_line(site.name)}", "", one_line(site.description), "", "## Actions", "", *usage(catalog)]
    for workflow in site.workflows:
        told = f": {one_line(workflow.description)}" if workflow.description else ""
        lines += ["", f"## {one_line(workflow.name)}{told}", ""]
        lines += [f"{number}. {step}" for number, step in enumerate(workflow.steps, 1)]
    if site.hints:
        lines += ["", "## Hints", "", *(f"- {name}: {one_line(text)}" for name, text in site.hints.items())]
    return ("\n".join(lines) + "\n").encode()


def _description(catalog: Catalog) -> str:
    site = catalog.site
    doing = ", ".join(action.id for action in catalog.actions)
    told = f"{first_sentence(site.description)} Use it to call the actions of {one_line(site.name)}: {doing}."
    return told if len(told) <= LONGEST_DESCRIPTION else told[: LONGEST_DESCRIPTION - 1].rpartition(" ")[0] + "…"


def _quoted(text: str) -> str:
    """A YAML scalar in double quotes: what JSON and YAML write alike."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_INDEX: Final = to_json(render)

PROTOCOL = Protocol(
    "agent_skills",
    documents=(
        Document(PATH, MEDIA_TYPE, _INDEX, condition=has_actions, door="woa"),
        Document(ALIAS_PATH, MEDIA_TYPE, _INDEX, condition=has_actions, door="woa"),
        Document(
            "/.well-known/agent-skills/site/SKILL.md",
            SKILL_MEDIA_TYPE,
            render_skill,
            condition=has_actions,
            moved=skill_path,
            door="woa",
        ),
    ),
)
