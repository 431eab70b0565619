"""What is said in the log at start-up: what a stranger would find in the documents, and what is kept in memory only."""

import logging
from collections.abc import Mapping
from typing import Final

from awp_publish.checks import check_documents
from awp_publish.guarding import remembering_actions
from awp_publish.serve.documents import Prepared
from awp_publish.site import Site

logger: Final = logging.getLogger("awp_publish.checks")

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING}


def warn_of_memory(site: Site) -> None:
    """Say that what calls leave behind is gone with the process, and unknown to others, if that is so."""
    actions = remembering_actions(site.catalog)
    if actions and not site.guarding.store.is_shared:
        logger.warning(
            "actions %s keep confirmations, keys or jobs in the memory of this process: they are lost when it ends, "
            'and other workers do not know them. Give Site(store="sqlite:///agents.db") or "redis://...".',
            ", ".join(actions),
        )


def report(documents: Mapping[str, Prepared], prefix: str) -> None:
    """Log what the checks find in the documents of one address, whose paths lie below `prefix`."""
    json_documents = {
        prefix + path: prepared.body for path, prepared in documents.items() if prepared.media_type.endswith("json")
    }
    for finding in check_documents(json_documents):
        logger.log(_LEVELS[finding.level], "%s", finding)
