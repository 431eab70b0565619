"""Why the confirmation that a call brings does not admit it."""

from awp_publish.problems import ConfirmationRequired, Problem


class ConfirmationExpired(ConfirmationRequired):
    slug = "confirmation-expired"
    title = "The confirmation has expired"
    default_recovery = "Ask your user again, then send the same call with the new confirmation.token."


class ConfirmationTampered(Problem):
    title = "The confirmation is not a token of this site"
    default_status = 400
    lacks = "input"
    default_recovery = "Send confirmation.token unchanged; or ask your user again and send the new one."


class ConfirmationForeign(Problem):
    title = "The confirmation is for another caller or another action"
    default_status = 403
    lacks = "input"
    default_recovery = "Ask your user about this call, then send it with the new confirmation.token."


class ConfirmationSpent(Problem):
    title = "The confirmation has already been used"
    default_status = 409
    lacks = "input"
    default_recovery = (
        "It admitted one call. Read how that call ended; to make another, ask your user again and send the new token."
    )


class ConfirmationMismatch(Problem):
    title = "The confirmation was given for another input"
    default_status = 409
    lacks = "input"
    default_recovery = "Send exactly the input that was confirmed, or ask your user about this one and use its token."


class ConfirmationStale(ConfirmationRequired):
    slug = "confirmation-stale"
    title = "The confirmation was given for something that has changed since"
    default_status = 409
    default_recovery = "Show the new confirmation.summary to your user. Only if they agree, use the new token."
