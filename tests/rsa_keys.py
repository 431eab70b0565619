"""RSA keys for tests, each made once: they take longer to make than to use."""

from functools import cache

from cryptography.hazmat.primitives.asymmetric import rsa


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)
