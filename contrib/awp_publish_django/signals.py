"""`agent_called`: sent after each call of an action, with what the record of calls says of it.

@receiver(agent_called)
def count(sender, facts, **kwargs): ...

`sender` is the Site, `facts` have `action`, `door`, `principal`, `outcome`, `status`, `ms`, `request_id` and, with
`Site(log_inputs=True)`, `input`. Receivers are called where calls are answered, so they must not block; what one of
them raises is logged and nothing else.
"""

import logging
from collections.abc import Mapping
from typing import Final

from django.dispatch import Signal

from awp_publish import Site

agent_called: Final = Signal()
logger: Final = logging.getLogger("awp_publish")


class Sender:
    """Sends the signal for the calls of one site."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __call__(self, facts: Mapping[str, object]) -> None:
        for receiver, answer in agent_called.send_robust(sender=self._site, facts=facts):
            if isinstance(answer, Exception):
                logger.error("a receiver of agent_called has failed: %r", receiver, exc_info=answer)
