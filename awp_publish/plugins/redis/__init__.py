"""A store in Redis, for several machines."""

from awp_publish.plugin import Plugin, Store
from awp_publish.problems import DeclarationError


def _open(url: str, namespace: str) -> Store:
    try:
        from awp_publish.plugins.redis.store import RedisStore
    except ImportError as error:
        package = (error.name or "redis").partition(".")[0]
        if package not in ("redis",):
            raise
        remedy = 'Install it: pip install "awp-publish[redis]".'
        detail = f"store= is in Redis, for which the package {package} is missing."
        raise DeclarationError("site", detail, remedy) from None
    return RedisStore(url, namespace)


PLUGIN = Plugin(name="redis", stores=dict.fromkeys(("redis", "rediss", "unix"), _open))
