"""Recent calls, and which entries of the store are jobs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("awp_publish_django", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="entry",
            name="is_job",
            field=models.BooleanField(db_index=True, default=False),
        ),
        migrations.CreateModel(
            name="JobRecord",
            fields=[],
            options={
                "verbose_name": "background job",
                "proxy": True,
                "default_permissions": ("view",),
                "indexes": [],
                "constraints": [],
            },
            bases=("awp_publish_django.entry",),
        ),
        migrations.CreateModel(
            name="RecentCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("time", models.DateTimeField(db_index=True)),
                ("door", models.CharField(max_length=20)),
                ("action", models.CharField(blank=True, max_length=100)),
                ("caller", models.CharField(blank=True, max_length=255)),
                ("outcome", models.CharField(max_length=100)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("milliseconds", models.FloatField()),
                ("request_id", models.CharField(max_length=128)),
                ("input", models.JSONField(null=True)),
            ],
            options={"default_permissions": ("view",)},
        ),
    ]
