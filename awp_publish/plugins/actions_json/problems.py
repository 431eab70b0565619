"""What a page in a visitor's tab did not do."""

from awp_publish.problems import Problem


class RuntimeFailed(Problem):
    """`actions.site` did not do what was requested. `error` has the bridge's code and evidence."""

    title = "The page could not do what was asked"
    default_status = 502
    default_recovery = "Read error.code and error.evidence: they say what to change and what has already been done."
