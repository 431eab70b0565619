"""Background jobs: calls that are answered before they are carried out.

jobs.py      a job's record, and the life cycle of jobs in a store: accept, show, cancel; reclaim, begin, end
worker.py    takes due jobs from the store and runs them in this process; `report_progress` for handlers
taskiq.py    the same jobs, distributed by taskiq (extra "jobs")
"""

from awp_publish.plugins.jobs.jobs import (
    IsRepeatable as IsRepeatable,
    Job as Job,
    JobResult as JobResult,
    JobStore as JobStore,
    Progress as Progress,
)
from awp_publish.plugins.jobs.worker import (
    Carrier as Carrier,
    Run as Run,
    Runner as Runner,
    Worker as Worker,
    report_progress as report_progress,
    wait_for_signal as wait_for_signal,
)
