"""The tables of `DjangoStore` and of the recent calls.

Names in the store are kept as hashes, so that any text is one, in any database.
"""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

HASH_LENGTH = 64


class Lock(models.Model):
    """One row for each site: whoever changes something updates it first, and so waits for whoever did before."""

    name = models.CharField(primary_key=True, max_length=HASH_LENGTH)
    turn = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.name)


class Entry(models.Model):
    """A value, or the events of a window. Times are in seconds since 1970."""

    key = models.CharField(primary_key=True, max_length=HASH_LENGTH)
    value = models.BinaryField()
    events = models.BigIntegerField(default=0)
    expires = models.FloatField(db_index=True)
    is_job = models.BooleanField(default=False, db_index=True)

    def __str__(self) -> str:
        return str(self.key)


class Member(models.Model):
    """A member of a queue, when it is due, and since when it is there."""

    key = models.CharField(primary_key=True, max_length=HASH_LENGTH)
    queue = models.CharField(max_length=HASH_LENGTH)
    name = models.BinaryField()
    due = models.FloatField()
    since = models.FloatField()

    class Meta:
        indexes = (models.Index(fields=("queue", "due"), name="awp_member_due"),)

    def __str__(self) -> str:
        return str(self.key)


class JobRecords(models.Manager[Entry]):
    """The entries that are jobs."""

    def get_queryset(self) -> models.QuerySet[Entry]:
        return super().get_queryset().filter(is_job=True)


class JobRecord(Entry):
    """A background job, for the admin."""

    objects: ClassVar[JobRecords] = JobRecords()

    class Meta:
        proxy = True
        default_permissions = ("view",)
        verbose_name = _("background job")


class ConnectedAgent(Entry):
    """An agent that a person has allowed to act, for the admin. Whatever the store is: it is asked, not this table."""

    class Meta:
        proxy = True
        default_permissions = ("view", "delete")
        verbose_name = _("connected agent")


class RecentCall(models.Model):
    """One call through a door, for the admin. `outcome` is "ok", the code of a problem, or UNANSWERED."""

    time = models.DateTimeField(db_index=True)
    door = models.CharField(max_length=20)
    action = models.CharField(max_length=100, blank=True)
    caller = models.CharField(max_length=255, blank=True)
    outcome = models.CharField(max_length=100)
    status = models.PositiveSmallIntegerField(null=True)
    milliseconds = models.FloatField()
    request_id = models.CharField(max_length=128)
    input = models.JSONField(null=True)

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.door} {self.action}".strip()
