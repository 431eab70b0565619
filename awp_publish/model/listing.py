"""Which actions a door lists to a caller. A list is a convenience: a call is guarded, whether it was listed or not."""

from dataclasses import dataclass

from awp_publish.model.actions import Action
from awp_publish.model.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Listing:
    """The rule of one door: all that a caller may see, or `only_allowed`, what it may call.

    With `or_after_sign_in` an action is listed, too, that the caller may call once a person has signed in and allowed
    one of the `offered` scopes. Where the site offers no scopes, the person's own permissions decide: then only who
    has not signed in yet may gain by it. `knows_callers`: people sign in at the site, none at routes alone.
    """

    only_allowed: bool
    or_after_sign_in: bool = False
    offered: frozenset[str] = frozenset()
    knows_callers: bool = False

    def shows(self, action: Action, scopes: frozenset[str] | None) -> bool:
        """Return True if a caller with these scopes is told of the action; None means an unknown caller."""
        if not action.is_for(scopes):
            return False
        if not self.only_allowed or (action.route_authenticates and not self.knows_callers):  # only the route knows
            return True
        if not (action.auth_required or action.scopes) or (scopes is not None and scopes.issuperset(action.scopes)):
            return True
        if not self.or_after_sign_in:
            return False
        return self.offered.issuperset(action.scopes) if self.offered else scopes is None


def listing_of(catalog: Catalog, only_allowed: bool | None) -> Listing:
    """Return the rule for a door's option `list_only_allowed`.

    None is the default: all actions, and on a site where people sign in those that the caller may call, or could.
    """
    authentication = catalog.site.authentication
    if authentication is None or not authentication.is_own_server:
        return Listing(bool(only_allowed))
    if only_allowed is not None:
        return Listing(only_allowed, knows_callers=True)
    return Listing(True, or_after_sign_in=True, offered=frozenset(authentication.scopes), knows_callers=True)
