"""The options of the bridge."""

from dataclasses import dataclass

from awp_publish.schema.options import Count, Flag, strict


@strict
@dataclass(frozen=True, slots=True)
class Bridge:
    """The bridge, with limits for the agents that use the site's maps through it.

    With `auth_required` every agent has to authenticate. One process keeps at most `sessions` pages at once, a fifth of
    them for one address; a connection sends at most `messages_per_second`.
    """

    auth_required: Flag = False
    sessions: Count = 500
    messages_per_second: Count = 50
