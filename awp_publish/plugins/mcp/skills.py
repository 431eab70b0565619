"""Skills: the extension `io.modelcontextprotocol/skills` (SEP-2640).

Each file of a skill is a resource `skill://NAME/PATH`, with the same bytes as in the agent-skills index. An entry
lists all files with digest and size, so that a client can verify that it reads what its person has agreed to.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from awp_publish.model import SKILL_FILE, Catalog, Skill
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult
from awp_publish.plugins.mcp.tool_list import LISTED

SKILLS: Final = "io.modelcontextprotocol/skills"
SKILL_SCHEME: Final = "skill://"
DIRECTORY: Final = "inode/directory"


class SkillParams(types.RequestParams):
    """Params of `skills/get`."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """Params of `resources/directory/read`."""

    uri: str


class SkillResources:
    """Lists and reads the skills of one public address of a site. `catalog` returns the present catalog."""

    def __init__(self, catalog: Callable[[], Catalog], guides: Any) -> None:
        self._catalog = catalog
        self._guides = guides

    def all(self) -> tuple[Skill, ...]:
        """Return the skills, as far as their documents publish them; none on a site that leaves them out."""
        catalog = self._catalog()
        if self._guides is None or not catalog.publishes("agent_skills"):
            return ()
        skills: tuple[Skill, ...] = self._guides.skills_of(catalog.public.exposed_at("woa"))
        return skills

    def register(self, server: Server[Any]) -> None:
        server.extensions[SKILLS] = {"directoryRead": True}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", SkillParams, self.get_skill)
        server.add_request_handler("resources/directory/read", DirectoryParams, self.read_directory)

    async def list_skills(self, _context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `skills/list` (Listing Skills)."""
        return {"skills": [self._skill_entry(skill) for skill in self.all()], **LISTED}

    async def get_skill(self, _context: RequestContext, params: SkillParams) -> WireResult:
        """Answer `skills/get` (Getting a Skill). Raises MCPError."""
        for skill in self.all():
            if _skill_uri(skill, SKILL_FILE) == params.uri:
                return {"skill": self._skill_entry(skill), **LISTED}
        raise MCPError(types.INVALID_PARAMS, f"No skill is served at {params.uri[:200]}.", {"uri": params.uri[:200]})

    async def read_directory(self, _context: RequestContext, params: DirectoryParams) -> WireResult:
        """Answer `resources/directory/read` (Reading Directories). Raises MCPError."""
        for skill in self.all():
            root = f"{SKILL_SCHEME}{skill.name}"
            if params.uri != root and not params.uri.startswith(f"{root}/"):
                continue
            folder = unquote(params.uri.removeprefix(root).removeprefix("/"))
            inside = f"{folder}/" if folder else ""
            below = [path.removeprefix(inside) for path in skill.files if path.startswith(inside)]
            if not below or params.uri.endswith("/"):
                break
            children = list[WireResult]()
            for name in dict.fromkeys(path.partition("/")[0] for path in below):
                path = inside + name
                listed = {"uri": _skill_uri(skill, path), "name": name, "mimeType": DIRECTORY}
                children.append(self._describe_file(skill, path) if path in skill.files else listed)
            return {"resources": children, "resultType": "complete"}
        detail = f"{params.uri[:200]} is not a directory resource."
        raise MCPError(types.INVALID_PARAMS, detail, {"uri": params.uri[:200]})

    def listed(self) -> Iterator[WireResult]:
        """Yield the entries of declared skills for `resources/list`: their SKILL.md.

        The site's own skill is among the documents.
        """
        declared = self._catalog().skills
        yield from (self._describe_file(skill, SKILL_FILE) for skill in self.all() if skill in declared)

    def read(self, uri: str) -> WireResult | None:
        """Return the result of `resources/read` for a file of a skill, or None if there is no such file."""
        for skill in self.all():
            for path, body in skill.files.items():
                if _skill_uri(skill, path) == uri:
                    contents: WireResult = {"uri": uri, "mimeType": self._kind(path)}
                    try:
                        contents["text"] = body.decode()
                    except UnicodeDecodeError:
                        contents["blob"] = base64.b64encode(body).decode()
                    return {"contents": [contents], **LISTED}
        return None

    def _kind(self, path: str) -> str:
        return str(self._guides.media_type_of(path)).partition(";")[0]

    def _describe_file(self, skill: Skill, path: str) -> WireResult:
        """Return a file as a resource (Resource Metadata)."""
        described: WireResult = {
            "uri": _skill_uri(skill, path),
            "name": path.rpartition("/")[2],
            "mimeType": self._kind(path),
        }
        if path == SKILL_FILE:
            described |= {"name": skill.name, "description": skill.description}
        return described | {"size": len(skill.files[path])}

    def _skill_entry(self, skill: Skill) -> WireResult:
        """Return a skill with all its files (Skill Entries)."""
        files = [
            {"uri": _skill_uri(skill, path), "digest": self._guides.digest_of(body), "size": len(body)}
            for path, body in skill.files.items()
        ]
        return {"uri": _skill_uri(skill, SKILL_FILE), "frontmatter": skill.facts, "resources": files}


def _skill_uri(skill: Skill, path: str) -> str:
    return f"{SKILL_SCHEME}{skill.name}/{quote(path)}"
