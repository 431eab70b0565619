"""Facts about the server process, which can only be read from the stack, and what follows for stores in memory."""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from awp_publish.model import Catalog
from awp_publish.problems import DeclarationError


def count_workers() -> int:
    """Return how many processes serve this application, this one included; 1 if the number is unknown.

    A server calls the application, so its settings are in the frames of the main thread: the number of workers of
    gunicorn, uvicorn and hypercorn, whether it was set by an option, a file or WEB_CONCURRENCY. With a reloader there
    is one process. WEB_CONCURRENCY itself is read only if no known server is found.
    """
    is_alone = False
    for frame in frames_of_server():
        match frame.f_globals.get("__name__"):
            case "gunicorn.arbiter":
                return _number(getattr(getattr(frame.f_locals.get("self"), "cfg", None), "workers", 1))
            case "uvicorn._subprocess" | "hypercorn.asyncio.run" if "config" in frame.f_locals:
                config = frame.f_locals["config"]
                reloads = getattr(config, "reload", False) or getattr(config, "use_reloader", False)
                return 1 if reloads else _number(getattr(config, "workers", 1))
            case "uvicorn.server" | "django.core.management.commands.runserver":
                is_alone = True  # unless it was started by one of those above
    return 1 if is_alone else _number(os.environ.get("WEB_CONCURRENCY", "1"))


def refuse_private_memory(catalog: Catalog, kept_by_plugins: Sequence[str]) -> None:
    """Raise DeclarationError if several workers would each keep in memory what they have to share.

    With a store in memory, one idempotency key would run a payment once in each of them. `kept_by_plugins` is what else
    would be kept, in words.
    """
    limit = catalog.site.rate_limit
    kept = [action.id for action in catalog.actions if action.remembers or action.rate_limit or action.requires]
    if not (kept or limit or kept_by_plugins) or (workers := count_workers()) == 1:
        return
    things = "idempotency keys, confirmations, receipts, jobs and counts of calls"
    what = [f"{things} of {', '.join(kept)}"] if kept else []
    what += ["counts of calls of all actions"] if limit and not kept else []
    raise DeclarationError(
        "site",
        f"{workers} workers serve it, and each would keep {' and '.join((*what, *kept_by_plugins))} in its own memory.",
        'Give Site(store="sqlite:///agents.db"), or "redis://..." for several machines; or run one worker.',
    )


def is_first_worker() -> bool:
    """Return True if this process is the first, or the only one, of those that a server started with this application.

    A worker that replaces another one is not the first: the first has already logged what there is to log.
    """
    for frame in frames_of_server():
        module, here = frame.f_globals.get("__name__"), frame.f_locals
        if module == "gunicorn.arbiter" and "worker" in here:
            return getattr(here["worker"], "age", 1) == 1
        if module == "multiprocessing.process" and "self" in here:
            return not getattr(here["self"], "_identity", ()) or here["self"]._identity[-1] == 1
    return True


def root_path_of_server() -> str:
    """Return uvicorn's `--root-path`, which its lifespan scope does not contain."""
    for frame in frames_of_server():
        if frame.f_globals.get("__name__") == "uvicorn.server":
            return str(getattr(getattr(frame.f_locals.get("self"), "config", None), "root_path", ""))
    return ""


def frames_of_server() -> Iterator[FrameType]:
    """Yield the frames of the main thread, innermost first."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _number(value: object) -> int:
    text = str(value).strip()
    return max(int(text), 1) if text.isdecimal() and len(text) < 9 else 1
