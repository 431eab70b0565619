from django.db import models


class Book(models.Model):
    title = models.CharField(max_length=50)
    pages = models.PositiveIntegerField(default=100, help_text="How long it is.")

    class Meta:
        app_label = "shop"
