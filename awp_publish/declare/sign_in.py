"""Who asks the callers of an action to sign in: its owner, a security scheme of its route, or the route's code."""

from awp_publish.declare.discover.routes import Operation
from awp_publish.declare.implementations import TargetApplication
from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.model import Asker
from awp_publish.problems import DeclarationError


def sign_in_of(
    subject: str,
    options: ActionSettings,
    operation: Operation,
    application: TargetApplication,
    *,
    refuses_in_time: bool,
) -> tuple[Asker | None, tuple[str, ...]]:
    """Return who asks the callers of an action to sign in, None if they need not, and the scopes that they need.

    Raises DeclarationError for scopes that nobody asks for.
    """
    asker = _asker_of(options, operation, application, refuses_in_time=refuses_in_time)
    if options.scopes is None:
        return asker, tuple(operation.scopes) if asker is not None else ()
    if options.scopes and asker is None:
        raise DeclarationError(subject, "scopes: need auth_required=True.", "Change one of the two.")
    return asker, tuple(options.scopes)


def _asker_of(
    options: ActionSettings, operation: Operation, application: TargetApplication, *, refuses_in_time: bool
) -> Asker | None:
    """Return who asks the callers to sign in.

    A route's scheme is relied on unless the site checks all that it reads. What only the route's code shows may be
    misread. So it does not count for what the owner declares, except where nobody but the route could know the caller:
    at a site without authenticators. It has to refuse callers before anything is done in their name
    (`refuses_in_time`), and nobody would check scopes.
    """
    if options.auth_required is False:
        return None
    is_declared = bool(options.auth_required or options.scopes)
    if not operation.auth_required:
        return "site" if is_declared else None
    if operation.security or operation.credentials:
        headers = {name for place, name in operation.credentials if place == "header"}
        is_checked = len(headers) == len(operation.credentials) and headers.issubset(application.credential_headers)
        return "site" if headers and is_checked else "scheme"
    is_relied_on = not (application.authenticates or options.scopes) and refuses_in_time
    return "code" if is_relied_on or not is_declared else "site"
