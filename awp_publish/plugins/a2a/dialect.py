"""The words of the A2A door for what is in a call."""

from typing import Final

from awp_publish.http.calling import Dialect
from awp_publish.problems import InvalidEnvelope, code_of

DIALECT: Final = Dialect(
    places={
        "skill": "it is a member of the data part, beside input",
        "input": "put its members directly into input",
        "idempotency_key": "send it as idempotency_key in the data part, beside input",
        "confirmation": "send it as confirmation in the data part, beside input",
        "receipts": "send them as receipts in the data part, beside input",
    },
    recoveries={
        "CONFIRMATION_REQUIRED": (
            "Show confirmation.summary to your user. Only if they agree, send a message in the same task with the data "
            'part {"confirmation": "<confirmation.token>"}.'
        ),
        "PREREQUISITE_REQUIRED": (
            "Call the skills listed in missing, unless they have already succeeded, then send a message in the same "
            'task. If you are not authenticated, add the data part {"receipts": [...]} with the awp-receipt in '
            "metadata.headers of each of their tasks. Do not repeat a call only to get its receipt."
        ),
        code_of(InvalidEnvelope.slug): (
            'Send one data part {"skill": "<id>", "input": {...}}; beside input may stand confirmation and the '
            "idempotency key as strings, receipts as a list of strings."
        ),
    },
)
