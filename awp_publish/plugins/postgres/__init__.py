"""A store in PostgreSQL, for several machines."""

from awp_publish.plugin import Plugin, Store
from awp_publish.problems import DeclarationError


def _open(url: str, namespace: str) -> Store:
    try:
        from awp_publish.plugins.postgres.store import PostgresStore
    except ImportError as error:  # raised without libpq, too
        package = (error.name or "psycopg").partition(".")[0]
        if package not in ("psycopg", "psycopg_pool"):
            raise
        remedy = 'Install it: pip install "awp-publish[postgres]".'
        detail = f"store= is in PostgreSQL, for which the package {package} is missing."
        raise DeclarationError("site", detail, remedy) from None
    return PostgresStore(url, namespace)


PLUGIN = Plugin(name="postgres", stores=dict.fromkeys(("postgresql",), _open))
