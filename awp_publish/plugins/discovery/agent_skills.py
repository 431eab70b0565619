"""The agent-skills index, version 0.2.0 of the discovery RFC, and the skills: declared ones, and one about the site.

A skill is a Markdown file with front matter (agentskills.io); the index has the SHA-256 of its exact bytes. Its other
files are beside it, where its relative links lead. Clients of the RFC's first version read
`/.well-known/skills/index.json`. Deliberately not emitted: skills of type "archive".
"""

import hashlib
import mimetypes
from collections.abc import Iterator
from typing import Final

import orjson

from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import MAX_SKILL_DESCRIPTION, SKILL_FILE, Catalog, Skill
from awp_publish.plugins.discovery.llms_txt import usage
from awp_publish.plugins.discovery.own_skill import SKILLS, skill_name, skill_path
from awp_publish.plugins.discovery.prose import first_sentence, one_line

PATH: Final = "/.well-known/agent-skills/index.json"
ALIAS_PATH: Final = "/.well-known/skills/index.json"
MEDIA_TYPE: Final = "application/json"
SKILL_MEDIA_TYPE: Final = "text/markdown; charset=utf-8"
SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"

_RUN_BY_BROWSERS: Final = ("application/javascript", "application/xhtml+xml", "image/svg+xml", "application/xml")


def has_skills(catalog: Catalog) -> bool:
    """Return True if there is a skill, our own or a declared one."""
    return bool(catalog.actions or catalog.skills)


def has_own_skill(catalog: Catalog) -> bool:
    """Return True if we make a skill: there are actions, and no declared skill has its name."""
    return bool(catalog.actions) and all(skill.name != skill_name(catalog) for skill in catalog.skills)


def skills_of(catalog: Catalog) -> tuple[Skill, ...]:
    """Return all skills of a site: the declared ones, then the one that we make."""
    if not has_own_skill(catalog):
        return catalog.skills
    name, description = skill_name(catalog), _description(catalog)
    facts = {"name": name, "description": description}
    return (*catalog.skills, Skill(name, description, facts, {SKILL_FILE: render_skill(catalog)}))


def render(catalog: Catalog) -> dict[str, object]:
    skills = [
        {
            "name": skill.name,
            "type": "skill-md",
            "description": skill.description,
            "url": f"{catalog.prefix}{SKILLS}/{skill.name}/{SKILL_FILE}",
            "digest": digest_of(skill.files[SKILL_FILE]),
        }
        for skill in skills_of(catalog)
    ]
    return {"$schema": SCHEMA, "skills": skills}


def digest_of(body: bytes) -> str:
    """Return the digest of a file as the index and MCP's skills extension write it."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def media_type_of(path: str) -> str:
    """Return the media type of a skill's file."""
    if path.endswith(".md"):
        return SKILL_MEDIA_TYPE
    kind = mimetypes.guess_type(path, strict=False)[0] or "application/octet-stream"
    # Files that a browser would run are served as text: they are for agents to read.
    return "text/plain; charset=utf-8" if kind.startswith("text/") or kind in _RUN_BY_BROWSERS else kind


def declared_files(catalog: Catalog) -> Iterator[Document]:
    for skill in catalog.skills:
        for path, body in skill.files.items():

            def give(_catalog: Catalog, body: bytes = body) -> bytes:
                return body

            yield Document(f"{SKILLS}/{skill.name}/{path}", media_type_of(path), give)


def render_skill(catalog: Catalog) -> bytes:
    site = catalog.site
    lines = [
        "---",
        f"name: {skill_name(catalog)}",
        f"description: {orjson.dumps(_description(catalog)).decode()}",
        "---",
        "",
    ]
    lines += [f"# {one_line(site.name)}", "", one_line(site.description), "", "## Actions", "", *usage(catalog)]
    for workflow in site.workflows:
        description = f": {one_line(workflow.description)}" if workflow.description else ""
        lines += ["", f"## {one_line(workflow.name)}{description}", ""]
        lines += [f"{number}. {step}" for number, step in enumerate(workflow.steps, 1)]
    if examples := [
        f"- {action.id}: {orjson.dumps(example).decode()}" for action in catalog.actions for example in action.examples
    ]:
        lines += ["", "## Examples", "", *examples]
    if site.hints:
        lines += ["", "## Hints", "", *(f"- {name}: {one_line(text)}" for name, text in site.hints.items())]
    return ("\n".join(lines) + "\n").encode()


def _description(catalog: Catalog) -> str:
    site = catalog.site
    doing = ", ".join(action.id for action in catalog.actions)
    description = f"{first_sentence(site.description)} Use it to call the actions of {one_line(site.name)}: {doing}."
    most = MAX_SKILL_DESCRIPTION
    return description if len(description) <= most else description[: most - 1].rpartition(" ")[0] + "…"


_INDEX: Final = to_json(render)

PROTOCOL = Protocol(
    "agent_skills",
    documents=(
        Document(PATH, MEDIA_TYPE, _INDEX, condition=has_skills, door="woa"),
        Document(ALIAS_PATH, MEDIA_TYPE, _INDEX, condition=has_skills, door="woa"),
        Document(
            "/.well-known/agent-skills/site/SKILL.md",
            SKILL_MEDIA_TYPE,
            render_skill,
            condition=has_own_skill,
            moved=skill_path,
            door="woa",
        ),
    ),
    further=declared_files,
)
