"""awp_publish: declare a website's actions once, and agents can discover and call them.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...

app.add_middleware(AgentPublisher, site=site)
"""

__version__ = "0.1.0"

from awp_publish.declare import Site as Site
from awp_publish.model import Authentication as Authentication
from awp_publish.model import Capabilities as Capabilities
from awp_publish.model import Contact as Contact
from awp_publish.model import Idempotency as Idempotency
from awp_publish.model import Pagination as Pagination
from awp_publish.model import Paths as Paths
from awp_publish.model import RateLimit as RateLimit
from awp_publish.model import Result as Result
from awp_publish.model import Security as Security
from awp_publish.model import Workflow as Workflow
from awp_publish.problems import DeclarationError as DeclarationError
from awp_publish.problems import Problem as Problem
from awp_publish.problems import Refused as Refused
from awp_publish.serve.asgi import AgentPublisher as AgentPublisher
