"""Background jobs: calls that are answered before they are carried out.

jobs.py      what is known of a job, and the life of jobs in a store: accept, show, cancel; reclaim, begin, end
worker.py    takes what is due out of the store, and runs it in this process; how a handler says how far it is
taskiq.py    the same jobs carried by taskiq (extra "jobs")
"""

from awp_publish.jobs.jobs import (
    IsRepeatable as IsRepeatable,
    Job as Job,
    JobResult as JobResult,
    JobStore as JobStore,
    Progress as Progress,
)
from awp_publish.jobs.worker import (
    Carrier as Carrier,
    Run as Run,
    Runner as Runner,
    Worker as Worker,
    report_progress as report_progress,
    wait_for_signal as wait_for_signal,
)
