"""May the caller know of the action? To others it does not exist, at doors that do not offer it either."""

import logging
from typing import Final

from awp_publish.calls.call import Call, scopes_of
from awp_publish.calls.gates.gate import Ask, Gate, GateCheck, GuardedSite
from awp_publish.model import PUBLIC, Action, Catalog
from awp_publish.problems import DeclarationError, UnknownAgent, did_you_mean
from awp_publish.schema.options import listing

logger: Final = logging.getLogger("awp_publish")


class _Audience(GateCheck[Ask]):
    def __init__(self, action: Action) -> None:
        self._action = action

    def enter(self, call: Call) -> None:
        """Raise the door's own problem for an unknown action, or what was objected to its request before."""
        if not (self._action.is_exposed_at(call.door) and self._action.is_for(scopes_of(call.principal))):
            raise call.unknown()
        if call.objection is not None:
            raise call.objection


def _check(catalog: Catalog, site: GuardedSite) -> None:
    doors = site.door_names()
    for action in catalog.actions:
        for name in action.expose or ():
            if name not in doors:
                remedy = did_you_mean(name, doors) or f"There are: {', '.join(sorted(doors))}."
                raise DeclarationError(f'action "{action.id}"', f'expose: there is no door "{name}" here.', remedy)
    narrowed = [action.id for action in catalog.actions if action.audience != PUBLIC]
    if narrowed and not site.authenticators:
        logger.warning(
            "Nobody can see %s: they are not public, and the site authenticates nobody. Give Site(authenticate=...).",
            listing(narrowed),
        )


AUDIENCE: Final = Gate(
    name="audience",
    order=200,
    of=lambda action, facts: None if action.is_public and action.expose is None else _Audience(action),
    refuses=(UnknownAgent,),
    options=("audience", "expose"),
    check=_check,
)
