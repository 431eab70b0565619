"""A gate in front of the handler said no: who calls, how often, under which key, confirmed or not, after what."""

from awp_publish.problems.problem import Problem


class AuthenticationRequired(Problem):
    slug = "authentication-required"
    title = "The action needs to know who calls"
    default_status = 401
    default_recovery = "Obtain credentials as WWW-Authenticate and the site's manifests say, then retry with them."


class InvalidCredentials(Problem):
    slug = "invalid-credentials"
    title = "The credentials are not valid"
    default_status = 401
    default_recovery = "Obtain new credentials as WWW-Authenticate and the site's manifests say, then retry with them."


class AuthExpired(Problem):
    slug = "auth-expired"
    title = "The credentials have expired"
    default_status = 401
    default_recovery = "Refresh the credentials (auth.refresh_endpoint of /agent.json, if there is one), then retry."


class InsufficientScope(Problem):
    slug = "insufficient-scope"
    title = "The credentials do not allow this action"
    default_status = 403
    default_recovery = "Ask for credentials with the scopes that missing_scopes names, then retry with them."


class ForeignHost(Problem):
    """A browser calls under a name that is not the site's: its page may have pointed that name here (DNS rebinding)."""

    slug = "foreign-host"
    title = "A browser called under a name that is not this site's"
    default_status = 403
    default_recovery = (
        "Open the site at one of its own addresses. If this address is one of them, its owner has to list it: "
        'Site(url=["https://first.example", "https://second.example"]).'
    )


class CrossSiteCookies(Problem):
    """Cookies are sent by browsers unasked, so they never authorise a call that another site's page makes."""

    slug = "cross-site-cookies"
    title = "Cookies do not authorise calls from other sites"
    default_status = 403
    default_recovery = "Call without cookies, or from a page of this site; identify yourself in Authorization."


class RateLimited(Problem):
    slug = "rate-limited"
    title = "There were too many calls"
    default_status = 429
    default_recovery = "Wait for the seconds in Retry-After, then retry."


class InvalidIdempotencyKey(Problem):
    slug = "invalid-idempotency-key"
    title = "The idempotency key is not usable"
    default_status = 400
    default_recovery = "Send one key of 1 to 255 printable ASCII characters, such as a new UUID, in one place only."


class IdempotencyKeyReused(Problem):
    slug = "idempotency-key-reused"
    title = "The idempotency key was used for another input"
    default_status = 409
    default_recovery = (
        "Use a new key for a new input, and the old key only with exactly the input it was first sent with."
    )


class IdempotencyKeyInFlight(Problem):
    slug = "idempotency-key-in-flight"
    title = "A call with this idempotency key is still running"
    default_status = 409
    default_recovery = "Wait for the seconds in Retry-After, then send the same call again to get its answer."


class OutcomeUnknown(Problem):
    """The first call with this key was interrupted: nobody can tell whether it took effect."""

    slug = "outcome-unknown"
    title = "An earlier call with this idempotency key was interrupted"
    default_status = 409
    default_recovery = "Find out whether the earlier call took effect; only if it did not, call again with a new key."


class AnswerNotKept(Problem):
    """The first call with this key succeeded, and its answer was too large to be recorded."""

    slug = "answer-not-kept"
    title = "The answer of an earlier call with this idempotency key was too large to be kept"
    default_status = 409
    default_recovery = "The earlier call took effect: do not make it again. Read what it did in another way."


class ConfirmationRequired(Problem):
    slug = "confirmation-required"
    title = "A person has to confirm this call"
    default_status = 428
    default_recovery = (
        "Show confirmation.summary to your user. Only if they agree, send the same call again with "
        "confirmation.token in the header AWP-Confirmation or the envelope's member confirmation."
    )


class ConfirmationExpired(Problem):
    slug = "confirmation-expired"
    title = "The confirmation has expired"
    default_status = 428
    default_recovery = "Ask your user again, then send the same call with the new confirmation.token."


class ConfirmationTampered(Problem):
    slug = "confirmation-tampered"
    title = "The confirmation is not a token of this site"
    default_status = 400
    default_recovery = "Send confirmation.token exactly as it was given; ask your user, then use the new one."


class ConfirmationForeign(Problem):
    slug = "confirmation-foreign"
    title = "The confirmation was given for somebody else or for another action"
    default_status = 403
    default_recovery = "Ask your user about this call, then send it with the new confirmation.token."


class ConfirmationSpent(Problem):
    slug = "confirmation-spent"
    title = "The confirmation was used already"
    default_status = 409
    default_recovery = (
        "It admitted one call. Read how that call ended; to make another, ask your user again and send the new token."
    )


class ConfirmationMismatch(Problem):
    slug = "confirmation-mismatch"
    title = "The confirmation was given for another input"
    default_status = 409
    default_recovery = "Send exactly the input that was confirmed, or ask your user about this one and use its token."


class PrerequisiteRequired(Problem):
    slug = "prerequisite-required"
    title = "Another action has to succeed first"
    default_status = 428
    default_recovery = (
        "Call the actions that missing names, then retry with the AWP-Receipt header of each answer "
        "in AWP-Receipt or the envelope's member receipts."
    )


class TemporarilyUnavailable(Problem):
    slug = "temporarily-unavailable"
    title = "The action does not work at the moment"
    default_status = 503
    default_recovery = "Wait for the seconds in Retry-After, look at agent_status in /agent.json, then retry."


class StoreUnavailable(Problem):
    """The store, without which this call cannot be guarded, is slow, full or gone."""

    slug = "store-unavailable"
    title = "The site cannot look after this call at the moment"
    default_status = 503
    default_recovery = "Wait for the seconds in Retry-After, then send the same call again, with the same key."
