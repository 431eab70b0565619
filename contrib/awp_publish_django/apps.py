"""The application's configuration: `agents.py` of every installed application is imported, as `admin.py` is."""

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.utils.module_loading import module_has_submodule
from django.utils.translation import gettext_lazy as _

from awp_publish.calls.authenticators import ADAPTERS
from awp_publish.declare.settings.site import URL_SOURCES
from awp_publish.declare.site import METHODS
from awp_publish_django.conf import NAME, url_of_project
from awp_publish_django.rest_authentication import adapt_rest_authentication

logger: Final = logging.getLogger("awp_publish")

FAILED: Final[list[Exception]] = []
"""The error that the import of an `agents.py` raised. It is an error of the checks. A server logs it and serves the
project without us, and it keeps no command from its work: a table that declarations ask for may be what `migrate` is
about to make."""


if url_of_project not in URL_SOURCES:  # before any module of the project makes its Site
    URL_SOURCES.append(url_of_project)


class AwpPublishConfig(AppConfig):
    """Declarations are collected when Django is ready, before the first request."""

    name = "awp_publish_django"
    label = "awp_publish_django"
    verbose_name = _("Agents")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        if adapt_rest_authentication not in ADAPTERS:
            from awp_publish_django.queries import declare_model

            ADAPTERS.append(adapt_rest_authentication)
            METHODS["model"] = declare_model
        options = getattr(settings, NAME, None)
        is_wanted = not isinstance(options, Mapping) or options.get("AUTODISCOVER", True) is not False
        for config in apps.get_app_configs() if is_wanted else ():
            if config.module is not None and module_has_submodule(config.module, "agents"):
                try:
                    import_module(f"{config.name}.agents")
                except Exception as error:
                    logger.warning("%s.agents cannot be imported: %s: %s", config.name, type(error).__name__, error)
                    FAILED.append(error)
        from awp_publish_django.checks import TAG, check_agents

        checks.register(check_agents, TAG)
