"""The live endpoints of one public address of a site, and which of them a path means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from awp_publish.guarding import make_enforcement
from awp_publish.invoke import Invoker, Observer
from awp_publish.jobs import Jobs
from awp_publish.model import Catalog
from awp_publish.policy.guard import Enforcement
from awp_publish.protocols import protected_resource
from awp_publish.serve.admission import Admission, read_admission_of
from awp_publish.serve.background import Background
from awp_publish.serve.cors import Cors
from awp_publish.serve.credentials import read_credentials, refuse_foreign_pages
from awp_publish.serve.dispatch import CalledApplication, RouteReach
from awp_publish.serve.exchange import Telling
from awp_publish.serve.invoke_address import InvokeAddress
from awp_publish.serve.jobs import JobsDoor
from awp_publish.serve.live import Answer, AnswerRest, Entrance, LiveDoor, Surroundings, open_live_doors
from awp_publish.serve.page_reading import PageReader
from awp_publish.serve.reply import Fields, Receive, Scope, Send
from awp_publish.serve.som import open_som
from awp_publish.serve.status import StatusDoor, StatusKeeper
from awp_publish.serve.woa import WoaDoor
from awp_publish.site import Site


@dataclass(frozen=True, slots=True)
class Doors:
    """The doors of one address.

    `exact` are those at paths known beforehand, `below` those below a path, `sockets` those that speak WebSocket.
    `heads` are what every path of ours begins with that is not known beforehand.
    """

    invoker: Invoker
    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest]
    heads: tuple[str, ...]
    woa: WoaDoor
    address: InvokeAddress
    live: tuple[LiveDoor, ...] = ()
    sockets: Mapping[str, Answer] = field(default_factory=dict)

    def find(self, scope: Scope, path: str) -> Answer | None:
        """The door that a path with one of the heads means, None if it is the application's."""
        for head, answer in self.below.items():
            if path.startswith(head):
                return partial(_pass_rest, answer, path.removeprefix(head))
        matched = self.address.match(path, scope["query_string"])
        if matched is None:
            return None
        return partial(self.woa.answer, self.address.agent_of(matched, scope["query_string"]))


def open_doors(
    site: Site,
    catalog: Catalog,
    app: CalledApplication,
    status: StatusKeeper,
    background: Background | None,
    pages: PageReader | None,
    entrance: Entrance,
) -> Doors:
    """The doors of one public address of a site; `pages` reads its pages, None where they are HTML only."""
    enforcement = make_enforcement(site.guarding, catalog, protected_resource.metadata_url(catalog))
    accept = background.accepting(catalog) if background is not None else None
    observer = Observer(site.guarding.log_inputs, site.call_listeners)
    invoker = Invoker(catalog, RouteReach(app, catalog), enforcement, accept, observer)
    admission = read_admission_of(site)
    woa, address = WoaDoor(catalog, invoker, admission), InvokeAddress(catalog.paths.invoke)
    calls = {path: partial(woa.answer, agent_id) for path, agent_id in address.calls(catalog).items()}
    live = open_live_doors(Surroundings(site, catalog, invoker, enforcement, admission, background, entrance, pages))
    below = dict(_jobs_door(catalog, admission, enforcement, background.jobs) if background is not None else {})
    exact: dict[str, Answer] = {catalog.paths.status: StatusDoor(site, status, admission.own_hosts)}
    if pages is not None:
        exact[catalog.paths.som] = open_som(pages, admission.own_hosts)
    exact |= calls
    for door in live:
        exact |= door.exact
        below |= door.below
    heads = (catalog.paths.invoke.partition("{")[0].partition("?")[0], *below)
    sockets = {path: answer for door in live for path, answer in door.sockets.items()}
    return Doors(invoker, exact, below, heads, woa, address, live, sockets)


def _jobs_door(
    catalog: Catalog, admission: Admission, enforcement: Enforcement, jobs: Jobs
) -> Mapping[str, AnswerRest]:
    gate = enforcement.identify()

    async def identify(scope: Scope, fields: Fields) -> str:
        refuse_foreign_pages(fields, admission.own_hosts)
        principal = await gate(read_credentials(scope, fields, admission.trusted_proxies))
        return principal.id if principal is not None else ""

    paths, cors = catalog.paths, Cors(admission.allow_origins)
    return {f"{paths.jobs}/": JobsDoor(jobs, catalog.absolute(paths.jobs), Telling(catalog), cors, identify)}


async def _pass_rest(answer: AnswerRest, rest: str, scope: Scope, receive: Receive, send: Send) -> None:
    await answer(scope, receive, send, rest)
