"""The settings of a project, with a quick hash for passwords.

After, they have our application, and our middleware below AuthenticationMiddleware, in the project's own list: tests
may change that while they run.
"""

import importlib
import os

project = importlib.import_module(os.environ["AWP_SUITE_SETTINGS"])
globals().update({name: getattr(project, name) for name in dir(project) if name.isupper()})
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if os.environ.get("AWP_SUITE_AFTER"):
    INSTALLED_APPS = [*project.INSTALLED_APPS, "awp_publish_django"]
    MIDDLEWARE = project.MIDDLEWARE if isinstance(project.MIDDLEWARE, list) else list(project.MIDDLEWARE)
    above = [place for place, name in enumerate(MIDDLEWARE) if name.endswith("AuthenticationMiddleware")]
    MIDDLEWARE.insert(above[-1] + 1 if above else 0, "awp_publish_django.middleware.AgentPublisherMiddleware")
    AWP_PUBLISH = {"SITE": "awp_suite_agents.site"}
