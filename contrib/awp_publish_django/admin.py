"""The admin lists recent calls and background jobs. Nothing can be changed there; who may look, permissions say."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from awp_publish.jobs.jobs import Job, UnreadableJob, read_job
from awp_publish_django.models import Entry, JobRecord, RecentCall

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin


class ReadOnlyAdmin(ModelAdmin):
    """Shows what a program has written."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(RecentCall)
class RecentCallAdmin(ReadOnlyAdmin):
    """The newest first. They are kept as far as AWP_PUBLISH["RECENT_CALLS"] says."""

    list_display = ("time", "door", "action", "caller", "outcome", "status", "milliseconds", "request_id")
    list_filter = ("door", "outcome", "action")
    search_fields = ("=request_id", "=caller")
    ordering = ("-pk",)


def _column(name: str, read: Callable[[Job], object]) -> Callable[[Entry], object]:
    @admin.display(description=name, empty_value="")
    def show(record: Entry) -> object:
        job = _job_of(record)
        return None if job is None else read(job)

    return show


def _progress(job: Job) -> str:
    return "" if job.progress is None else f"{job.progress.fraction:.0%} {job.progress.message}".strip()


def _outcome(job: Job) -> str:
    return "" if not job.has_ended else "ok" if job.problem is None else job.problem.code


COLUMNS: Final[Any] = (  # of functions, which the stubs know for some of its uses only
    _column("ID", lambda job: job.id),
    _column("action", lambda job: job.action),
    _column("status", lambda job: job.status),
    _column("progress", _progress),
    _column("caller", lambda job: job.principal),
    _column("attempt", lambda job: job.attempt),
    _column("created", lambda job: job.created),
    _column("updated", lambda job: job.updated),
    _column("outcome", _outcome),
)


@admin.register(JobRecord)
class JobRecordAdmin(ReadOnlyAdmin):
    """Jobs of a DjangoStore in this database, until they are forgotten. Inputs and credentials are not shown."""

    list_display = COLUMNS
    fields = COLUMNS
    readonly_fields = COLUMNS
    ordering = ("-expires",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        return super().get_queryset(request).filter(expires__gt=time.time())


def _job_of(record: Entry) -> Job | None:
    return _read(bytes(record.value))


@lru_cache(maxsize=100)
def _read(raw: bytes) -> Job | None:
    """Each column of a row asks for the same bytes."""
    try:
        return read_job(raw)
    except UnreadableJob:
        return None
