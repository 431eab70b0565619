"""`path("", include("awp_publish_django.urls"))`: documents and doors as URLs, for a project without the middleware.

With the middleware these are never reached. Without it a call passes the whole of the project's middleware once more,
as a request for its view; pages are served as HTML only, and routes are not guarded (`guard_routes`).
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch, URLPattern
from django.urls.resolvers import RoutePattern
from django.views.decorators.csrf import csrf_exempt

from awp_publish_django.publication import get_publication, is_publishing


@transaction.non_atomic_requests
@csrf_exempt
def answer(request: HttpRequest) -> HttpResponseBase:
    """The answer of a document or a door."""
    from awp_publish_django.answering_wsgi import answer_here

    response = answer_here(get_publication(), request)
    if response is None:
        raise Http404
    return response


answer.login_required = False  # type: ignore[attr-defined]


class OwnPattern(URLPattern):
    """Takes the addresses that the publisher answers, which it is asked when they are: it reads this URLconf itself."""

    answers_agents = True

    def resolve(self, path: str) -> ResolverMatch | None:
        if is_publishing():
            return None
        publisher, url = get_publication().publisher, get_publication().site.settings.urls[0]
        host = url.split("/")[2].encode("latin-1", "replace")
        scope = {
            "method": "GET",
            "path": f"/{path}",
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", host)],
        }
        if not publisher.owns(scope):
            return None
        view: Callable[..., Any] = self.callback
        return ResolverMatch(view, (), {}, "agents", route=path, captured_kwargs={}, extra_kwargs={})


urlpatterns = [OwnPattern(RoutePattern("agents", name="agents"), answer, name="agents")]
