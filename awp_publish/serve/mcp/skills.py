"""Skills of the site as resources: the extension `io.modelcontextprotocol/skills` (SEP-2640).

Each file of a skill is a resource `skill://NAME/PATH`, the same bytes as in the agent-skills index. An entry lists all
of them with digest and size, so that a client knows what it has read is what its person has agreed to.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types

from awp_publish.model import Catalog, Skill
from awp_publish.protocols.agent_skills import MANIFEST, digest_of, media_type_of, skills_of
from awp_publish.serve.mcp.calls import LIST_TTL, Context, WireResult
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

EXTENSION: Final = "io.modelcontextprotocol/skills"
SCHEME: Final = "skill://"
DIRECTORY: Final = "inode/directory"

_CACHED: Final = {"ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}


class SkillParams(types.RequestParams):
    """Params of `skills/get`."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """Params of `resources/directory/read`."""

    uri: str


class SkillResources:
    """Lists and reads the skills of one public address of a site. `catalog` is what is published at the moment."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def all(self) -> tuple[Skill, ...]:
        """Return the skills there are; none on a site that leaves them out."""
        catalog = self._catalog()
        return skills_of(catalog) if catalog.publishes("agent_skills") else ()

    def register(self, server: Server[Any]) -> None:
        """Have the SDK's server offer the extension."""
        server.extensions[EXTENSION] = {"directoryRead": True}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", SkillParams, self.get_skill)
        server.add_request_handler("resources/directory/read", DirectoryParams, self.read_directory)

    async def list_skills(self, _context: Context, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `skills/list` (Listing Skills)."""
        return {"skills": [_entry(skill) for skill in self.all()], **_CACHED}

    async def get_skill(self, _context: Context, params: SkillParams) -> WireResult:
        """Answer `skills/get` (Getting a Skill). Raises MCPError."""
        for skill in self.all():
            if _uri(skill, MANIFEST) == params.uri:
                return {"skill": _entry(skill), **_CACHED}
        raise MCPError(types.INVALID_PARAMS, f"No skill is served at {params.uri[:200]}.", {"uri": params.uri[:200]})

    async def read_directory(self, _context: Context, params: DirectoryParams) -> WireResult:
        """Answer `resources/directory/read` (Reading Directories). Raises MCPError."""
        for skill in self.all():
            root = f"{SCHEME}{skill.name}"
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
                listed = {"uri": _uri(skill, path), "name": name, "mimeType": DIRECTORY}
                children.append(_described(skill, path) if path in skill.files else listed)
            return {"resources": children, "resultType": "complete"}
        told = f"{params.uri[:200]} is not a directory resource."
        raise MCPError(types.INVALID_PARAMS, told, {"uri": params.uri[:200]})

    def listed(self) -> Iterator[WireResult]:
        """Yield what `resources/list` says of declared skills: the file that is read first.

        The site's own is among the documents.
        """
        declared = self._catalog().skills
        yield from (_described(skill, MANIFEST) for skill in self.all() if skill in declared)

    def read(self, uri: str) -> WireResult | None:
        """Return what `resources/read` answers for a file of a skill; None for what is none."""
        for skill in self.all():
            for path, body in skill.files.items():
                if _uri(skill, path) == uri:
                    contents: WireResult = {"uri": uri, "mimeType": _kind(path)}
                    try:
                        contents["text"] = body.decode()
                    except UnicodeDecodeError:
                        contents["blob"] = base64.b64encode(body).decode()
                    return {"contents": [contents], **_CACHED}
        return None


def _uri(skill: Skill, path: str) -> str:
    return f"{SCHEME}{skill.name}/{quote(path)}"


def _kind(path: str) -> str:
    return media_type_of(path).partition(";")[0]


def _described(skill: Skill, path: str) -> WireResult:
    """A file as a resource (Resource Metadata)."""
    described: WireResult = {"uri": _uri(skill, path), "name": path.rpartition("/")[2], "mimeType": _kind(path)}
    if path == MANIFEST:
        described |= {"name": skill.name, "description": skill.description}
    return described | {"size": len(skill.files[path])}


def _entry(skill: Skill) -> WireResult:
    """A skill with all its files (Skill Entries)."""
    files = [
        {"uri": _uri(skill, path), "digest": digest_of(body), "size": len(body)} for path, body in skill.files.items()
    ]
    return {"uri": _uri(skill, MANIFEST), "frontmatter": skill.facts, "resources": files}
