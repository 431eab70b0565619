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
