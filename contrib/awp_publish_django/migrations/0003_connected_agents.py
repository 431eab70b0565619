"""Who may see the agents that people have allowed to act, and disconnect them."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("awp_publish_django", "0002_recent_calls")]

    operations = [
        migrations.CreateModel(
            name="ConnectedAgent",
            fields=[],
            options={
                "verbose_name": "connected agent",
                "proxy": True,
                "default_permissions": ("view", "delete"),
                "indexes": [],
                "constraints": [],
            },
            bases=("awp_publish_django.entry",),
        ),
    ]
