"""Keys that encrypt and decrypt."""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, TypeVar

from pydantic import model_validator

from octo.connector import Connector
from octo.errors import OctoError, missing_extra
from octo.fields import Text, one_of
from octo.refusals import Refusals

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

    from octo.runtime import Runtime

ALGORITHMS: Final = ("aes-gcm", "chacha20-poly1305", "rsa-oaep")
KEY_BYTES: Final = {"aes-gcm": (16, 24, 32), "chacha20-poly1305": (32,)}
NONCE_BYTES: Final = 12
SMALLEST_RSA_BITS: Final = 2048


K = TypeVar("K", bound="RSAPrivateKey | RSAPublicKey")


class Unsealable(Exception):
    """The data cannot be decrypted; why is not told."""


class Crypto(Connector, type="crypto"):
    """A key, or a pair of keys, that `encrypt` and `decrypt` use."""

    algorithm: Annotated[Literal["aes-gcm", "chacha20-poly1305", "rsa-oaep"], one_of(*ALGORITHMS)] = "aes-gcm"
    """How data is encrypted. `rsa-oaep` works with SHA-256 and for short data only."""

    key: Text | None = None
    """The secret key of `aes-gcm` (16, 24 or 32 bytes) or `chacha20-poly1305` (32 bytes)."""

    key_encoding: Annotated[Literal["base64", "hex", "utf8"], one_of("base64", "hex", "utf8")] = "base64"
    """How `key` is written; `utf8` takes its characters as the bytes of the key."""

    public_key: Text | None = None
    """RSA public key in PEM form, of at least 2048 bits; it encrypts."""

    private_key: Text | None = None
    """RSA private key in PEM form; it decrypts, and encrypts too when no public key is given."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refusals = Refusals()
        if hint := missing_extra("cryptography", "crypto"):
            refusals.add("connector type `crypto` needs the package `cryptography`", hint=hint)
            refusals.raise_if_any()
        symmetric = self.algorithm != "rsa-oaep"
        for key, given, used in (
            ("key", self.key, symmetric),
            ("publicKey", self.public_key, not symmetric),
            ("privateKey", self.private_key, not symmetric),
        ):
            if given is not None and not used:
                refusals.add(f"`{key}` has no use with `algorithm: {self.algorithm}`", key, hint="leave it out")
        if symmetric:
            self._check_secret(refusals)
        else:
            self._check_pair(refusals)
        refusals.raise_if_any()
        return self

    def _check_secret(self, refusals: Refusals) -> None:
        if self.key is None:
            refusals.add(f"`algorithm: {self.algorithm}` requires `key`", hint="add `key:`")
            return
        try:
            length = len(self.secret())
        except ValueError:
            refusals.add(f"expected a key in {self.key_encoding}, found other text", "key", hint="see `keyEncoding`")
            return
        fitting = KEY_BYTES[self.algorithm]
        if length not in fitting:
            expected = " or ".join(", ".join(map(str, fitting)).rsplit(", ", 1))
            refusals.add(f"expected a key of {expected} bytes for `{self.algorithm}`, found {length}", "key")

    def _check_pair(self, refusals: Refusals) -> None:
        if self.public_key is None and self.private_key is None:
            refusals.add("`algorithm: rsa-oaep` requires `publicKey` or `privateKey`", hint="add one of them")
        public, private = None, None
        try:
            public = self.encrypting()
        except ValueError as error:
            refusals.add(str(error), "publicKey")
        try:
            private = self.decrypting()
        except ValueError as error:
            refusals.add(str(error), "privateKey")
        if public and private and private.public_key().public_numbers() != public.public_numbers():
            refusals.add("`publicKey` and `privateKey` are no pair", "publicKey")

    def secret(self) -> bytes:
        """The bytes of the secret key. Raises ValueError."""
        text = self.key or ""
        match self.key_encoding:
            case "base64":
                return base64.b64decode("".join(text.split()), validate=True)
            case "hex":
                return bytes.fromhex(text)
        return text.encode()

    def encrypting(self) -> RSAPublicKey | None:
        """The public key as given. Raises ValueError, which says what is wrong with it."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        if self.public_key is None:
            return None
        key = _read(self.public_key, load_pem_public_key)
        if not isinstance(key, RSAPublicKey):
            raise ValueError("expected an RSA key, found a key of another kind")
        return _long_enough(key)

    def decrypting(self) -> RSAPrivateKey | None:
        """The private key as given. Raises ValueError, which says what is wrong with it."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        if self.private_key is None:
            return None
        key = _read(self.private_key, lambda pem: load_pem_private_key(pem, password=None))
        if not isinstance(key, RSAPrivateKey):
            raise ValueError("expected an RSA key, found a key of another kind")
        return _long_enough(key)

    @property
    def only_encrypts(self) -> bool:
        """Whether there is no key that could decrypt."""
        return self.algorithm == "rsa-oaep" and self.private_key is None

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Cipher]:
        if self.algorithm == "rsa-oaep":
            private = self.decrypting()
            public = self.encrypting() or (private.public_key() if private else None)
            if public is not None:
                yield _rsa_cipher(public, private)
            return
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

        yield _secret_cipher((AESGCM if self.algorithm == "aes-gcm" else ChaCha20Poly1305)(self.secret()))


def _read(pem: str, load: Callable[[bytes], object]) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load(pem.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("expected a key in PEM form, found other text") from None
    except TypeError:
        raise ValueError("the key is protected by a password") from None


def _long_enough(key: K) -> K:
    if key.key_size < SMALLEST_RSA_BITS:
        raise ValueError(f"expected an RSA key of at least {SMALLEST_RSA_BITS} bits, found {key.key_size}")
    return key


@dataclass(frozen=True, slots=True)
class Cipher:
    """What a `crypto` connector opens to."""

    seal: Callable[[bytes], bytes]
    """Encrypts. Raises OctoError for data that is too long for the key."""
    unseal: Callable[[bytes], bytes]
    """Decrypts. Raises Unsealable."""


def _secret_cipher(aead: AESGCM | ChaCha20Poly1305) -> Cipher:
    """One key for both directions. Sealed data is a random nonce, the ciphertext and its tag."""
    from cryptography.exceptions import InvalidTag

    def seal(data: bytes) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + aead.encrypt(nonce, data, None)

    def unseal(data: bytes) -> bytes:
        try:
            return aead.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
        except (InvalidTag, ValueError):
            raise Unsealable from None

    return Cipher(seal, unseal)


def _rsa_cipher(public: RSAPublicKey, private: RSAPrivateKey | None) -> Cipher:
    """A public key that encrypts and, perhaps, its private key that decrypts."""
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.hashes import SHA256

    padding = OAEP(MGF1(SHA256()), SHA256(), None)
    most = public.key_size // 8 - 66

    def seal(data: bytes) -> bytes:
        if len(data) > most:
            raise OctoError(
                f"expected at most {most} bytes for an RSA key of {public.key_size} bits, found {len(data)}",
                hint="encrypt the data with `aes-gcm`, and only its key with `rsa-oaep`",
            )
        return public.encrypt(data, padding)

    def unseal(data: bytes) -> bytes:
        if private is None:
            raise Unsealable
        try:
            return private.decrypt(data, padding)
        except ValueError:
            raise Unsealable from None

    return Cipher(seal, unseal)
