"""Accounts: two for demonstration, made with the database, and the check of a password."""

import hashlib
import hmac
import secrets
import sqlite3

from demo_site.refusals import wrong_password

DEMO_ACCOUNTS = {"reader": "lamplight", "visitor": "bookmark"}


def fill(connection: sqlite3.Connection) -> None:
    """Open the demonstration accounts."""
    for name, password in DEMO_ACCOUNTS.items():
        salt = secrets.token_bytes(16)
        connection.execute(
            "INSERT INTO accounts (name, salt, password_hash) VALUES (?, ?, ?)", (name, salt, _hash(password, salt))
        )


def authenticate(connection: sqlite3.Connection, name: str, password: str) -> int:
    """Return the number of the account with this name and password, or refuse."""
    row = connection.execute("SELECT * FROM accounts WHERE name = ?", (name,)).fetchone()
    # An unknown name costs the same work as a wrong password, so the time taken does not tell them apart.
    salt, expected = (row["salt"], row["password_hash"]) if row else (b"", b"")
    if not hmac.compare_digest(_hash(password, salt), expected):
        raise wrong_password()
    return int(row["account_id"])


def name_of(connection: sqlite3.Connection, account_id: int) -> str | None:
    """Return the name of an account, if there is such an account."""
    row = connection.execute("SELECT name FROM accounts WHERE account_id = ?", (account_id,)).fetchone()
    return str(row["name"]) if row else None


def _hash(password: str, salt: bytes) -> bytes:
    # "surrogatepass": a form may carry any code points, and a strange password is wrong, not an error.
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, n=2**14, r=8, p=1)
