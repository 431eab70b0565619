"""The options of the AWP door."""

from dataclasses import dataclass

from awp_publish.schema.options import Count, Flag, strict


@strict
@dataclass(frozen=True, slots=True)
class Awp:
    """The AWP door, with limits for the agents that browse through it.

    With `auth_required` every connection has to authenticate. One process keeps at most `sessions` at once, a fifth of
    them for one address; a connection sends at most `messages_per_second`. With `list_only_allowed` an agent is told
    only of the skills that it may invoke; None tells it of all, and on a site with `SignIn` of those that it may
    invoke or could after signing in.
    """

    auth_required: Flag = False
    sessions: Count = 500
    messages_per_second: Count = 50
    list_only_allowed: Flag | None = None
