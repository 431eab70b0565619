"""A page for each problem type, at the address of its `type`."""

from awp_publish.plugin import Plugin, Protocol
from awp_publish.plugins.problem_pages.pages import problem_documents

NAME = "problem_pages"

PROTOCOL = Protocol(NAME, (), further=problem_documents)

PLUGIN = Plugin(name=NAME, is_default=True, documents=[PROTOCOL])
