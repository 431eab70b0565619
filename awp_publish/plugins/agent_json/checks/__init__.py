"""The checks of an agent.json, as plug-ins announce theirs."""

from awp_publish.plugins.agent_json.checks.document import AGENT_JSON as AGENT_JSON
