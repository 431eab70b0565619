"""Background jobs: looking for one, stopping one, and how one ends that has no result."""

from awp_publish.problems.problem import Problem


class TooManyJobs(Problem):
    """As many of the caller's jobs wait or run as the site takes on for one caller."""

    slug = "too-many-jobs"
    title = "Too many of your jobs have not ended"
    default_status = 429
    default_recovery = "Poll the jobs that you have, or cancel some; when one has ended, send the same call again."


class JobQueueFull(Problem):
    """As many jobs wait or run as the site takes on for all of its callers."""

    slug = "job-queue-full"
    title = "The site takes on no more jobs at the moment"
    default_status = 503
    default_recovery = "Wait for the seconds in Retry-After, then send the same call again, with the same key."


class UnknownJob(Problem):
    """There is none, it has expired, or it belongs to somebody else; which of these, nobody is told."""

    slug = "unknown-job"
    title = "There is no such job"
    default_status = 404
    default_recovery = "Poll with the address and the credentials with which the job was started; results expire."


class JobEnded(Problem):
    slug = "job-ended"
    title = "The job has ended and cannot be cancelled"
    default_status = 409
    default_recovery = "Do not retry: GET the job to read how it ended."


class JobCancelled(Problem):
    slug = "job-cancelled"
    title = "The job was cancelled"
    default_status = 409
    default_recovery = "It may have taken effect in part: check, then call the action again if it is still wanted."


class JobInterrupted(Problem):
    """The process that ran a job died, and the action may not be run twice."""

    slug = "job-interrupted"
    title = "The job was interrupted"
    default_status = 500
    default_recovery = "Find out whether the job took effect; only if it did not, call the action again."
