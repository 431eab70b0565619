"""The start-up check: what is about to be served is read as a stranger would read it, and findings go to the log."""

import logging
from collections.abc import Mapping
from typing import Final

from awp_publish.checks import check_documents
from awp_publish.serve.documents import Prepared

logger: Final = logging.getLogger("awp_publish.checks")

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.DEBUG}


def report(documents: Mapping[str, Prepared], prefix: str) -> None:
    """Log what the checks find in the documents of one address, whose paths lie below `prefix`."""
    json_documents = {
        prefix + path: prepared.body for path, prepared in documents.items() if prepared.media_type.endswith("json")
    }
    for finding in check_documents(json_documents):
        logger.log(_LEVELS[finding.level], "%s", finding)
