"""The published schema of the document."""

from tests.documents.conftest import matches_agent_json as matches_agent_json
