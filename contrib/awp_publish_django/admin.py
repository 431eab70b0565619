"""The admin lists recent calls, with traffic and what waits for approval, background jobs, and connected agents.

Nothing can be changed there, but that an agent is disconnected; who may look, permissions say.
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib import admin
from django.contrib.messages import ERROR, SUCCESS
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, gettext_lazy as _

from awp_publish.calls.threads import RUNNER
from awp_publish.plugins.jobs.job import Job, UnreadableJob, read_job
from awp_publish.problems import DeclarationError, StoreUnavailable
from awp_publish_django.models import ConnectedAgent, Entry, JobRecord, RecentCall
from awp_publish_django.publication import get_publication

logger: Final = logging.getLogger("awp_publish")

TRAFFIC_DAYS: Final = 30

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from awp_publish.plugins.sign_in.grants import Grant
    from awp_publish.plugins.sign_in.site import SignInSite

    ModelAdmin = admin.ModelAdmin[Model]
else:
    ModelAdmin = admin.ModelAdmin


def register_admin(model: type[Model]) -> Callable[[type["ReadOnlyAdmin"]], type["ReadOnlyAdmin"]]:
    """Return a decorator that registers an admin, in place of one of a project that registers all models by itself."""

    def register(kind: type["ReadOnlyAdmin"]) -> type["ReadOnlyAdmin"]:
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, kind)
        return kind

    return register


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


@register_admin(RecentCall)
class RecentCallAdmin(ReadOnlyAdmin):
    """The newest first. They are kept as far as AWP_PUBLISH["RECENT_CALLS"] says.

    Above them are the traffic of the last days, and what waits for approval.
    """

    list_display = ("time", "door", "action", "caller", "outcome", "status", "milliseconds", "request_id")
    list_filter = ("door", "outcome", "action")
    search_fields = ("=request_id", "=caller")
    ordering = ("-pk",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**_facts_of_site(), **(extra_context or {})})


def _facts_of_site() -> dict[str, object]:
    """Return what the template of recent calls shows above them. What cannot be read costs the list nothing."""
    problems: list[str] = []
    facts: dict[str, object] = {"awp_problems": problems, "awp_waiting": None}
    try:
        site = get_publication().site
    except Exception:  # the checks say what is wrong with the project
        logger.exception("the admin cannot show traffic")
        return facts
    if (approvals := site.ask("approval")) is not None:
        try:
            facts["awp_waiting"] = [standing for standing in approvals.standing() if standing.state != "approved"]
        except DeclarationError as error:
            problems.append(str(error))
    if (record := site.ask("traffic")) is not None:
        try:
            report = async_to_sync(record.read)(TRAFFIC_DAYS)
        except StoreUnavailable as problem:
            problems.append(gettext("Traffic cannot be read at the moment: %s") % problem.detail)
        except Exception:
            logger.exception("traffic could not be read")
            problems.append(gettext("Traffic cannot be read at the moment: the store failed. The log has the details."))
        else:
            facts["awp_traffic_svg"] = mark_safe(report.chart())  # both escape what they show
            facts["awp_traffic_table"] = mark_safe(report.table())
            facts["awp_traffic_breakdowns"] = report.breakdowns(with_callers=True)
    return facts


@lru_cache(maxsize=100)
def _job_of(raw: bytes) -> Job | None:
    """Each column of a row asks for the same bytes."""
    try:
        return read_job(raw)
    except UnreadableJob:
        return None


def _column(name: "StrOrPromise", read: Callable[[Job], object]) -> Callable[[Entry], object]:
    @admin.display(description=name)
    def show(record: Entry) -> object:
        job = _job_of(bytes(record.value))
        value = read(job) if job is not None else None
        return "" if value is None else value

    return show


COLUMNS: Final[Any] = (  # of functions, which the stubs know for some of its uses only
    _column(_("ID"), lambda job: job.id),
    _column(_("action"), lambda job: job.action),
    _column(_("status"), lambda job: job.status),
    _column(_("progress"), lambda job: job.progress and f"{job.progress.fraction:.0%} {job.progress.message}".strip()),
    _column(_("caller"), lambda job: job.principal),
    _column(_("attempt"), lambda job: job.attempt),
    _column(_("created"), lambda job: job.created),
    _column(_("updated"), lambda job: job.updated),
    _column(_("outcome"), lambda job: ("ok" if job.problem is None else job.problem.code) if job.has_ended else None),
)


@register_admin(JobRecord)
class JobRecordAdmin(ReadOnlyAdmin):
    """Jobs of a DjangoStore in this database, until they are forgotten. Inputs and credentials are not shown."""

    list_display = COLUMNS
    fields = COLUMNS
    readonly_fields = COLUMNS
    ordering = ("-expires",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        return super().get_queryset(request).filter(expires__gt=time.time())


@register_admin(ConnectedAgent)
class ConnectedAgentAdmin(ReadOnlyAdmin):
    """The newest agents that people have allowed to act (`SignIn`), each of which may be disconnected.

    They are in the site's store, wherever that is. Neither tokens nor cookies are shown.
    """

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        return super().get_queryset(request).none()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super(ReadOnlyAdmin, self).has_delete_permission(request, obj)

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        return super().get_model_perms(request) if _sign_in() is not None else {}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        may_end, sign_in = self.has_delete_permission(request), _sign_in()
        if request.method == "POST" and sign_in is not None:
            if not may_end:
                raise PermissionDenied
            self._end(request, sign_in, request.POST.get("end", ""))
            return HttpResponseRedirect(request.path)
        grants: list[Grant] = []
        if sign_in is not None:
            try:
                grants = async_to_sync(sign_in.grants.recent)()
            except StoreUnavailable as problem:
                self.message_user(request, problem.detail, ERROR)
        facts = {
            **self.admin_site.each_context(request),
            "title": gettext("Connected agents"),
            "opts": self.opts,
            "agents": [_described(grant) for grant in grants],
            "may_end": may_end,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/awp_publish_django/connectedagent/change_list.html", facts)

    def _end(self, request: HttpRequest, sign_in: "SignInSite", grant_id: str) -> None:
        async def end() -> "Grant | None":
            before = RUNNER.set(lambda function: sync_to_async(function)())  # in the thread of this request
            try:
                return await sign_in.disconnect(grant_id)
            finally:
                RUNNER.reset(before)  # async_to_sync gives the thread what this context says

        try:
            ended = async_to_sync(end)()
        except StoreUnavailable as problem:
            self.message_user(request, problem.detail, ERROR)
            return
        if ended is not None:
            name = _described(ended)["name"]
            self.message_user(request, gettext("%s is disconnected. Its access has ended.") % name, SUCCESS)


def _sign_in() -> "SignInSite | None":
    """Return the sign-in of the site, None without it."""
    try:
        sign_in: SignInSite | None = get_publication().site.ask("sign_in")
    except Exception:  # the checks say what is wrong with the project
        logger.exception("the admin cannot show connected agents")
        return None
    return sign_in


def _described(grant: "Grant") -> dict[str, object]:
    host = urlsplit(grant.client).netloc if grant.client.startswith("https://") else ""
    times = {"since": grant.began, "used": max(grant.refreshed, grant.began), "until": grant.until}
    return {
        "id": grant.id,
        "name": grant.client_name,
        "host": host,
        "person": grant.person_name,
        "scopes": ", ".join(grant.scopes),
        **{name: datetime.fromtimestamp(seconds, UTC) for name, seconds in times.items()},
    }
