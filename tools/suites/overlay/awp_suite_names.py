"""A plug-in of pytest: the server of a project has the name in AWP_SUITE_SERVER, which leads to this machine."""

import os
import socket
from typing import Any

resolve = socket.getaddrinfo


def resolve_here(host: Any, *arguments: Any, **options: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host
    return resolve("127.0.0.1" if name == os.environ["AWP_SUITE_SERVER"] else host, *arguments, **options)


socket.getaddrinfo = resolve_here
