"""The settings of a project, with our application and our middleware below AuthenticationMiddleware."""

import importlib
import os

project = importlib.import_module(os.environ["AWP_SUITE_SETTINGS"])
globals().update({name: getattr(project, name) for name in dir(project) if name.isupper()})
INSTALLED_APPS = [*project.INSTALLED_APPS, "awp_publish_django"]
MIDDLEWARE = list(project.MIDDLEWARE)
above = [place for place, name in enumerate(MIDDLEWARE) if name.endswith("AuthenticationMiddleware")]
MIDDLEWARE.insert(above[-1] + 1 if above else 0, "awp_publish_django.middleware.AgentPublisherMiddleware")
AWP_PUBLISH = {"SITE": "awp_suite_agents.site"}
