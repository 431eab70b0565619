"""Why a call is not accepted as a job, a job is not shown or cancelled, and how one ends that nobody cancelled."""

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


class UnknownJob(Problem):
    """The job does not exist, has expired, or belongs to another caller; the answer does not reveal which."""

    title = "There is no such job"
    default_status = 404
    default_recovery = "Poll the address that the call returned, with the same credentials; results expire."


class JobEnded(Problem):
    title = "The job has ended and cannot be cancelled"
    default_status = 409
    default_recovery = "Do not retry: GET the job to read how it ended."


class JobInterrupted(Problem):
    """The process that ran a job died, and the action is not safe to run again."""

    title = "The job was interrupted"
    default_status = 500
    default_recovery = "Find out whether the job took effect; only if it did not, call the action again."
