"""Who sends a request to the A2A door, and what they may see."""

from dataclasses import replace

from awp_publish.calls.call import Principal, key_of, scopes_of
from awp_publish.http.client_address import client_address
from awp_publish.http.credentials import read_credentials
from awp_publish.http.request import DoorRequest
from awp_publish.model import Action
from awp_publish.plugin import Context
from awp_publish.problems import Problem


class Callers:
    """Identifies the callers of one address of a site."""

    def __init__(self, door: Context) -> None:
        self._trusted = door.admission.trusted_proxies
        self._identify = door.guards.identify()
        self._identify_uncounted = replace(self._identify, store=None)

    def address(self, request: DoorRequest) -> str:
        return client_address(request.scope, request.fields, self._trusted)

    async def principal(self, request: DoorRequest, *, of_call: bool = False) -> Principal | None:
        """Return the caller, None if unknown. Raises a Problem for invalid credentials.

        With `of_call` wrong credentials are ignored: the call itself reports and counts them.
        """
        identify = self._identify_uncounted if of_call else self._identify
        try:
            return await identify(read_credentials(request.scope, request.fields, self._trusted))
        except Problem:
            if of_call:
                return None
            raise

    async def key(self, request: DoorRequest, *, of_call: bool = False) -> str:
        """Return the key of the caller, "" if unknown. Raises a Problem for invalid credentials."""
        return key_of(await self.principal(request, of_call=of_call))

    async def may_see(self, action: Action, request: DoorRequest) -> bool:
        if action.is_public:
            return True
        principal = await self.principal(request, of_call=True)
        return action.is_for(scopes_of(principal))
