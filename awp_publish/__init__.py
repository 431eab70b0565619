"""awp_publish: declare a website's actions once, and agents can discover and call them.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...

app.add_middleware(AgentPublisher, site=site)
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from awp_publish.calls.application_users import ApplicationUser as ApplicationUser, SessionUser as SessionUser
from awp_publish.calls.call import Credentials as Credentials, Principal as Principal
from awp_publish.calls.callers import current_caller as current_caller
from awp_publish.calls.sent_secrets import ApiKey as ApiKey, BearerToken as BearerToken
from awp_publish.calls.verifiers import Custom as Custom
from awp_publish.declare.settings.about import About as About
from awp_publish.declare.settings.proxies import Proxies as Proxies
from awp_publish.declare.settings.site import Limits as Limits, OAuth as OAuth
from awp_publish.declare.site import Site as Site
from awp_publish.http.asgi import AgentPublisher as AgentPublisher
from awp_publish.model import (
    Idempotency as Idempotency,
    Paths as Paths,
    Robots as Robots,
    Security as Security,
    Workflow as Workflow,
    __version__ as __version__,
)
from awp_publish.problems import DeclarationError as DeclarationError, Problem as Problem, Refused as Refused

if _TYPE_CHECKING:
    from awp_publish.calls.progress import report_progress as report_progress
    from awp_publish.plugins.actions_json.options import Bridge as Bridge
    from awp_publish.plugins.agent_json.options import AgentJson as AgentJson
    from awp_publish.plugins.approval.options import Approval as Approval
    from awp_publish.plugins.awp.options import Awp as Awp
    from awp_publish.plugins.awp.shared_secrets import SharedSecret as SharedSecret
    from awp_publish.plugins.confirmation.options import Confirmation as Confirmation
    from awp_publish.plugins.discovery.options import Discovery as Discovery
    from awp_publish.plugins.identity.botauth import WebBotAuth as WebBotAuth
    from awp_publish.plugins.identity.jwt import JwtBearer as JwtBearer
    from awp_publish.plugins.jobs.options import Jobs as Jobs
    from awp_publish.plugins.mcp.options import Mcp as Mcp
    from awp_publish.plugins.overview.options import Overview as Overview
    from awp_publish.plugins.pages.options import Pages as Pages
    from awp_publish.plugins.search.options import Search as Search
    from awp_publish.plugins.sign_in.options import Client as Client, Person as Person, SignIn as SignIn
    from awp_publish.plugins.traffic.options import Traffic as Traffic

_OF_PLUGINS = {
    "AgentJson": "awp_publish.plugins.agent_json.options",
    "Approval": "awp_publish.plugins.approval.options",
    "Awp": "awp_publish.plugins.awp.options",
    "Bridge": "awp_publish.plugins.actions_json.options",
    "Confirmation": "awp_publish.plugins.confirmation.options",
    "Discovery": "awp_publish.plugins.discovery.options",
    "Jobs": "awp_publish.plugins.jobs.options",
    "Mcp": "awp_publish.plugins.mcp.options",
    "Overview": "awp_publish.plugins.overview.options",
    "Pages": "awp_publish.plugins.pages.options",
    "Client": "awp_publish.plugins.sign_in.options",
    "Person": "awp_publish.plugins.sign_in.options",
    "SignIn": "awp_publish.plugins.sign_in.options",
    "Search": "awp_publish.plugins.search.options",
    "SharedSecret": "awp_publish.plugins.awp.shared_secrets",
    "Traffic": "awp_publish.plugins.traffic.options",
    "JwtBearer": "awp_publish.plugins.identity.jwt",
    "WebBotAuth": "awp_publish.plugins.identity.botauth",
    "report_progress": "awp_publish.calls.progress",
}
"""Names of plug-ins that stand on this shelf, and their modules, which are imported when they are first used."""


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_PLUGINS})


def __getattr__(name: str) -> object:
    module = _OF_PLUGINS.get(name)
    if module is None:
        raise AttributeError(f"module 'awp_publish' has no attribute {name!r}")
    value: object = getattr(_import_module(module), name)
    globals()[name] = value
    return value
