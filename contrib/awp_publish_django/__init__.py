"""awp_publish for Django: the same site declaration, as a Django developer expects it.

INSTALLED_APPS += ["awp_publish_django"]
MIDDLEWARE += ["awp_publish_django.middleware.AgentPublisherMiddleware"]
AWP_PUBLISH = {"SITE": "shop.agents.site"}

The documents, doors and gates are those of awp_publish; here they are only translated.
"""
