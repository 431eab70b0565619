"""The options of the MCP door."""

from dataclasses import dataclass

from awp_publish.schema.options import Flag, strict


@strict
@dataclass(frozen=True, slots=True)
class Mcp:
    """The MCP door.

    With `list_only_allowed`, `tools/list` lists only the tools that the caller may call. None lists all tools, and on a
    site with `SignIn` those that the caller may call or could after signing in.
    """

    list_only_allowed: Flag | None = None
