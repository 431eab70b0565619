"""Background jobs: calls that are answered before they are carried out.

record.py    what is known of a job, and the same as bytes
jobs.py      the life of jobs in a store: accept, show, cancel; reclaim, begin, end
run.py       one run of a job in this process
worker.py    takes what is due out of the store
progress.py  how a handler says how far it is
signals.py   how a worker process is told to end
taskiq.py    the same jobs carried by taskiq (extra "jobs")
"""

from awp_publish.jobs.jobs import IsRepeatable as IsRepeatable, Jobs as Jobs
from awp_publish.jobs.progress import report_progress as report_progress
from awp_publish.jobs.record import Job as Job, JobResult as JobResult, Progress as Progress
from awp_publish.jobs.run import Run as Run, Runner as Runner
from awp_publish.jobs.signals import wait_for_signal as wait_for_signal
from awp_publish.jobs.worker import Carrier as Carrier, Worker as Worker
