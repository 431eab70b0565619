"""The application's configuration: `agents.py` of every installed application is imported, as `admin.py` is."""

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import autodiscover_modules


class AwpPublishConfig(AppConfig):
    """Declarations are collected when Django is ready, before the first request."""

    name = "awp_publish_django"
    label = "awp_publish_django"
    verbose_name = "Agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        autodiscover_modules("agents")
        from awp_publish_django.checks import TAG, check_agents

        checks.register(check_agents, TAG)
