"""A store in Redis or Valkey, for several machines: one server, one with replicas and sentinels, or a cluster."""

from awp_publish.plugin import Plugin, Store
from awp_publish.problems import DeclarationError


def _open(url: str, namespace: str) -> Store:
    try:
        from awp_publish.plugins.redis.cluster import RedisClusterStore
        from awp_publish.plugins.redis.store import RedisStore
    except ImportError as error:
        package = (error.name or "redis").partition(".")[0]
        if package not in ("redis",):
            raise
        remedy = 'Install it: pip install "awp-publish[redis]".'
        detail = f"store= is in Redis, for which the package {package} is missing."
        raise DeclarationError("site", detail, remedy) from None
    is_cluster = url.partition(":")[0].endswith("+cluster")
    return RedisClusterStore(url, namespace) if is_cluster else RedisStore(url, namespace)


_SCHEMES = ("redis", "rediss", "valkey", "valkeys")
_ALL = [f"{scheme}{kind}" for scheme in _SCHEMES for kind in ("", "+cluster", "+sentinel")]
PLUGIN = Plugin(name="redis", stores=dict.fromkeys((*_ALL, "unix"), _open))
