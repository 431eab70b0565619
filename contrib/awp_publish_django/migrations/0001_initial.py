"""The first tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("value", models.BinaryField()),
                ("events", models.BigIntegerField(default=0)),
                ("expires", models.FloatField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Lock",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("turn", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("queue", models.CharField(max_length=64)),
                ("name", models.BinaryField()),
                ("due", models.FloatField()),
                ("since", models.FloatField()),
            ],
            options={
                "indexes": [models.Index(fields=["queue", "due"], name="awp_member_due")],
            },
        ),
    ]
