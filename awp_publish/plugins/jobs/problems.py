"""Why a call of a background action is not accepted."""

from awp_publish.problems import Problem


class TooManyJobs(Problem):
    """The caller has as many unfinished jobs, or bytes of jobs and results, as the site keeps for one caller."""

    title = "You have too many unfinished jobs"
    default_status = 429
    is_refusal = True
    default_recovery = "Poll your jobs or cancel some; when one has ended, send the same call again."


class JobQueueFull(Problem):
    """The site has as many unfinished jobs, or bytes of jobs and results, as it takes from all such callers."""

    title = "The site accepts no more jobs at the moment"
    default_status = 503
    is_refusal = True
    default_recovery = "Wait for the seconds in Retry-After, then send the same call again, with the same key."
