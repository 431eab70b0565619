"""Why a call with a key that was used before has no answer."""

from awp_publish.problems import Problem


class IdempotencyKeyReused(Problem):
    title = "The idempotency key was used for another input"
    default_status = 409
    default_recovery = (
        "Use a new key for a new input, and the old key only with exactly the input it was first sent with."
    )


class IdempotencyKeyInFlight(Problem):
    title = "A call with this idempotency key is still running"
    default_status = 409
    default_recovery = "Wait for the seconds in Retry-After, then send the same call again to get its answer."


class OutcomeUnknown(Problem):
    """The first call with this key was interrupted; it is unknown whether it took effect."""

    title = "An earlier call with this idempotency key was interrupted"
    default_status = 409
    default_recovery = "Find out whether the earlier call took effect; only if it did not, call again with a new key."
