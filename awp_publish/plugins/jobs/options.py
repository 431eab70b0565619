"""The options of background jobs."""

from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import AfterValidator

from awp_publish.schema.options import Count, matching, strict

check_queue: Final = matching(
    r"(?s:(rediss?|unix)://.+)", 'must be the address of a Redis, such as "redis://queue.example:6379/0"'
)
"""The message does not repeat the queue's address, which may contain a password."""


@strict
@dataclass(frozen=True, slots=True)
class Jobs:
    """Background jobs. `concurrency` is the number that run at the same time in one process.

    `queue` is the address of the Redis through which taskiq sends them to worker processes; without it they run in the
    processes of the site itself.
    """

    queue: Annotated[str, AfterValidator(check_queue)] | None = field(default=None, repr=False)
    concurrency: Count = 4
