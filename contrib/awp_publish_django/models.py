"""The tables of `DjangoStore`. Names are kept as hashes, so that any text is one, in any database."""

from django.db import models

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
