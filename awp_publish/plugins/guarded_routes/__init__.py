"""The gates of calls for direct requests of the actions' own routes: `guard_routes=True`."""

from typing import Any

from starlette.types import ASGIApp

from awp_publish.plugin import Context, Plugin

NAME = "guarded_routes"


def _at(context: Context) -> Any:
    """Return what guards the routes at one address, None if no route is guarded."""
    by_site = context.settings.guard_routes
    actions = [
        action
        for action in context.catalog.actions
        if (by_site if action.guards_route is None else action.guards_route)
    ]
    if all(action.target is None for action in actions):
        return None
    from awp_publish.plugins.guarded_routes.routes import GuardedRoutes

    guarded = GuardedRoutes(context, actions)
    return guarded if guarded.is_needed else None


def _around(context: Context, app: ASGIApp) -> ASGIApp:
    guarded = context.ask(NAME)
    return app if guarded is None else guarded.around(app)


PLUGIN = Plugin(name=NAME, is_default=True, fulfils=("guard_routes",), at=_at, around=_around)
