import uuid

from django.core.validators import MaxValueValidator, RegexValidator
from django.db import models


class Book(models.Model):
    title = models.CharField(max_length=50)
    pages = models.PositiveIntegerField(default=100, help_text="How long it is.")

    class Meta:
        app_label = "shop"


class Shelf(models.Model):
    code = models.CharField(max_length=9, validators=[RegexValidator(r"^[A-Z]+$")])
    boards = models.IntegerField(validators=[MaxValueValidator(7)])

    class Meta:
        app_label = "shop"
        managed = False


class Issue(models.Model):
    """A number of a magazine, which has no number for its key."""

    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=20, default="Spring", unique=True)
    book = models.ForeignKey(Book, models.PROTECT, null=True, blank=True)
    price = models.DecimalField(max_digits=5, decimal_places=2, default=1)
    facts = models.JSONField(null=True, blank=True)
    made = models.DateTimeField(auto_now=True)
    cover = models.FileField(blank=True)

    class Meta:
        app_label = "shop"
        verbose_name = "Issue (of 2)"
        verbose_name_plural = "ISSUES"
        ordering = ("-name",)
