"""Pages for agents: the site's HTML as SOM and Markdown, with links to both."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

from starlette.types import ASGIApp

from awp_publish.model import Catalog, Paths
from awp_publish.plugin import Context, Door, Endpoints, Plugin, Serving, Setup
from awp_publish.plugins.pages.command import ROBOTS
from awp_publish.plugins.pages.options import Pages
from awp_publish.plugins.pages.som import DOOR, PROTOCOL, SOM_VERSION, robots_lines
from awp_publish.problems import DeclarationError

PACKAGE: Final = "selectolax"


def _start(setup: Setup) -> Pages | None:
    """Return the formats of pages; None if only their links are served, as long as no extra is installed."""
    if find_spec(PACKAGE) is not None:
        options: Pages = setup.options
        return options
    if setup.is_named:
        wrong = f'plugins: "pages" needs the package {PACKAGE}, which is missing.'
        raise DeclarationError("site", wrong, 'Install it: pip install "awp-publish[pages]".')
    return None


def _serve(serving: Serving) -> Any:
    """Return the renderer of pages, None if pages are served as HTML only."""
    if serving.state is None:
        return None
    from awp_publish.plugins.pages.rendering import PageRenderer

    renderer = PageRenderer()
    if (traffic := serving.ask("traffic")) is not None:
        from awp_publish.plugins.pages.counting import count_readings

        renderer.on_reading = count_readings(serving, traffic)
    return renderer


def _at(context: Context) -> Any:
    """Return the reader of pages, None if pages are served as HTML only."""
    if context.service is None:
        return None
    from awp_publish.plugins.pages.reader import PageReader

    return PageReader(
        context.settings,
        context.options,
        context.catalog,
        context.application.app,
        context.service,
        context.application.owns,
        context.application.lifespan_state,
        negotiated_at(context).links,
    )


def negotiated_at(context: Context) -> Any:
    """Return the pages of an address in the formats that are offered, None if there is only HTML."""
    from awp_publish.plugins.pages.negotiation import negotiated_pages

    return negotiated_pages(context)


def _around(context: Context, app: ASGIApp) -> ASGIApp:
    from awp_publish.plugins.pages.negotiation import negotiate

    return negotiate(app, negotiated_at(context), context.links, context.settings.limits.timeout, context.links_json)


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    discovery = setup.ask("discovery")
    if discovery is None or not discovery.robots_proposals:
        return catalog
    return replace(catalog, robots_lines=(*catalog.robots_lines, robots_lines))


def _doors(setup: Setup, paths: Paths) -> Iterator[Door]:
    if setup.state is not None:
        yield Door(name=DOOR, calls=False, version=SOM_VERSION, path=paths.som, open=_open)


def _open(context: Context) -> Endpoints:
    from awp_publish.plugins.pages.door import SomDoor

    door = SomDoor(context.ask("pages"), context.admission.own_origins)
    return Endpoints(exact={context.catalog.paths.som: door})


PLUGIN = Plugin(
    name="pages",
    options=Pages,
    is_default=True,
    start=_start,
    derive=_derive,
    documents=(PROTOCOL,),
    serve=_serve,
    at=_at,
    around=_around,
    doors=_doors,
    commands={"robots": ROBOTS},
)
