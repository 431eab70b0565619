"""`Session`: cookies, pages and who browses; the methods of the protocol are in `methods.py`."""

import time
from collections.abc import Callable, Mapping

from awp_publish.browsing.limits import Limits
from awp_publish.browsing.origins import Origins
from awp_publish.model import JsonObject


class Session:
    """One browsing session over this site.

    `clock` tells Unix time in seconds (cookies expire by it, loading is measured with it). A session is used by one
    task at a time: a second method that needs the network while one is under way on the same page raises CONFLICT.
    """

    def __init__(
        self,
        origins: Origins,
        *,
        id: str | None = None,
        user_agent: str | None = None,
        locale: str | None = None,
        limits: Limits = Limits(),  # noqa: B008
        cache: "PageCache | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        raise NotImplementedError

    id: str
    """`s_` and 32 hexadecimal digits of chance; whoever knows it may speak for the session."""
    user_agent: str
    locale: str
    created: float
    """Unix seconds by the session's clock."""

    @property
    def url(self) -> str | None:
        """The address of the first open page that has one (for session.list)."""

    @property
    def page_count(self) -> int:
        """How many pages are open."""

    def export(self) -> JsonObject:
        """All that is worth carrying: cookies, who browses, the pages' addresses and histories. JSON, unsigned.

        Bodies and what was typed stay behind: pages are fetched again with `page.reload` after an import.
        """

    @classmethod
    def restore(
        cls,
        exported: object,
        origins: Origins,
        *,
        limits: Limits = Limits(),  # noqa: B008
        cache: "PageCache | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> "Session":
        """The session that `export` described, under a new id. INVALID_REQUEST for anything else."""
