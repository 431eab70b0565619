"""The invocation URL template of WoA (section 4.3.1), written for every agent and read backwards."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qs, parse_qsl

from awp_publish.model import Catalog


class InvokeAddress:
    """The invocation URL template, read backwards: from a request to the agent it means."""

    def __init__(self, template: str) -> None:
        self._template = template
        path, _, query = template.partition("?")
        self._path = re.compile(_as_pattern(path))
        pairs = parse_qsl(query, keep_blank_values=True)
        self._query = [(name, re.compile(_as_pattern(value))) for name, value in pairs if "{agent_id}" in value]
        self._fixed = [(name, value) for name, value in pairs if "{agent_id}" not in value]

    def calls(self, catalog: Catalog) -> Mapping[str, str]:
        """The invocation paths of the catalog's agents, where an agent is told by the path alone."""
        if "?" in self._template or "{agent_id}" not in self._template:
            return {}
        return {self._template.replace("{agent_id}", agent.id): agent.id for agent in catalog.agents}

    def match(self, path: str, query_string: bytes) -> re.Match[str] | None:
        """Whether a request is an invocation.

        A path with a placeholder is shared with the application's own, so its query has to be there too.
        """
        matched = self._path.fullmatch(path)
        if matched is None or not self._path.groups or not self._fixed:
            return matched
        given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
        return matched if all(value in given.get(name, ()) for name, value in self._fixed) else None

    def agent_of(self, matched: re.Match[str], query_string: bytes) -> str | None:
        """The agent that the URL names, None if it names none."""
        if self._path.groups:
            return matched["agent_id"]
        if not self._query:
            return None
        given = parse_qs(query_string.decode("latin-1"))
        found = (pattern.fullmatch(value) for name, pattern in self._query for value in given.get(name, ()))
        return next((match["agent_id"] for match in found if match), None)


def _as_pattern(text: str) -> str:
    return re.escape(text).replace(re.escape("{agent_id}"), r"(?P<agent_id>[^/]+)")
