"""The ciphers of sync: signatures, boxes under a shared key, keys for one machine, keys under a passphrase.

Ed25519 signs, X25519 hands keys over, scrypt makes a key of a passphrase, AES-256-GCM seals. Each box has a key of its
own, derived by HKDF from a random salt, so that no nonce is ever used twice.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from lukasa.model.machines import Lock, Secrets

SALT, NONCE, KEY = 16, 12, 32
COST, BLOCK, PARALLEL = 1 << 17, 8, 1  # scrypt: 128 MB and some tenths of a second
_LEAST_COST, _MOST_COST = 1 << 14, 1 << 18  # what others may ask for: at most 256 MB


class Unopened(Exception):
    """A box, signature or key does not belong to what it is said to belong to."""


def new_secrets() -> Secrets:
    """Make the private keys of a machine."""
    return Secrets(
        Ed25519PrivateKey.generate().private_bytes_raw().hex(), X25519PrivateKey.generate().private_bytes_raw().hex()
    )


def public(secrets: Secrets) -> tuple[str, str]:
    """Return the public keys of a machine: the one that verifies, and the one that keys are wrapped for."""
    verify = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secrets.sign)).public_key()
    receive = X25519PrivateKey.from_private_bytes(bytes.fromhex(secrets.agree)).public_key()
    return verify.public_bytes_raw().hex(), receive.public_bytes_raw().hex()


def sign(secrets: Secrets, data: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secrets.sign)).sign(data)


def verify(key: str, signature: bytes, data: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, data)
    except (InvalidSignature, ValueError):
        raise Unopened("its signature is not its machine's") from None


def derived(secret: str | bytes, salt: bytes, purpose: str) -> bytes:
    """Return a key for one purpose."""
    material = bytes.fromhex(secret) if isinstance(secret, str) else secret
    return HKDF(hashes.SHA256(), KEY, salt, f"lukasa sync: {purpose}".encode()).derive(material)


def box(secret: str | bytes, purpose: str, data: bytes) -> bytes:
    """Seal data under a key for one purpose."""
    salt = os.urandom(SALT)
    return salt + AESGCM(derived(secret, salt, purpose)).encrypt(bytes(NONCE), data, None)


def unbox(secret: str | bytes, purpose: str, sealed: bytes) -> bytes:
    salt, rest = sealed[:SALT], sealed[SALT:]
    try:
        return AESGCM(derived(secret, salt, purpose)).decrypt(bytes(NONCE), rest, None)
    except (InvalidTag, ValueError):
        raise Unopened("it cannot be opened") from None


def seal(key: bytes, place: int, about: bytes, data: bytes) -> bytes:
    """Seal one part of a bundle. A bundle's key is used for this bundle alone, and each place in it once."""
    return AESGCM(key).encrypt(place.to_bytes(NONCE, "big"), data, about)


def unseal(key: bytes, place: int, about: bytes, sealed: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(place.to_bytes(NONCE, "big"), sealed, about)
    except (InvalidTag, ValueError):
        raise Unopened("a part of it cannot be opened") from None


def wrap(agree: str, purpose: str, data: bytes) -> bytes:
    """Seal data for the machine that has this public key."""
    once = X25519PrivateKey.generate()
    try:
        shared = once.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(agree)))
    except ValueError:
        raise Unopened("a machine's public key is no key") from None
    own = once.public_key().public_bytes_raw()
    return own + box(shared, f"{purpose}: {own.hex()}: {agree}", data)


def unwrap(secrets: Secrets, purpose: str, sealed: bytes) -> bytes:
    other, rest = sealed[:KEY], sealed[KEY:]
    try:
        shared = X25519PrivateKey.from_private_bytes(bytes.fromhex(secrets.agree)).exchange(
            X25519PublicKey.from_public_bytes(other)
        )
    except ValueError:
        raise Unopened("its wrapped key is no key") from None
    return unbox(shared, f"{purpose}: {other.hex()}: {public(secrets)[1]}", rest)


def lock(passphrase: str, purpose: str, data: bytes) -> Lock:
    """Seal data under a passphrase."""
    salt = os.urandom(SALT)
    key = Scrypt(salt, KEY, COST, BLOCK, PARALLEL).derive(passphrase.encode())
    return Lock(COST, BLOCK, PARALLEL, salt.hex(), box(key, purpose, data).hex())


def unlock(passphrase: str, purpose: str, locked: Lock) -> bytes:
    """Open what is under a passphrase. Parameters beyond the bounds are refused before anything is computed."""
    fit = _LEAST_COST <= locked.n <= _MOST_COST and locked.n & (locked.n - 1) == 0
    if not fit or locked.r != BLOCK or not 1 <= locked.p <= 2:
        raise Unopened(f"it asks for scrypt with n={locked.n}, r={locked.r}, p={locked.p}, which is out of bounds")
    key = Scrypt(bytes.fromhex(locked.salt), KEY, locked.n, locked.r, locked.p).derive(passphrase.encode())
    return unbox(key, purpose, bytes.fromhex(locked.box))
