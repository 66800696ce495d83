"""octo/connectors/crypto.py: keys and what is wrong with them."""

import base64
import sys
from functools import cache
from textwrap import indent

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from octo.connectors.crypto import Cipher, Unsealable
from octo.errors import ConfigError, OctoError
from octo.testing.harness import config, runtime


@cache
def pair(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def private_pem(key=None, form=PrivateFormat.PKCS8, password: bytes | None = None) -> str:
    protection = BestAvailableEncryption(password) if password else NoEncryption()
    return (key or pair()).private_bytes(Encoding.PEM, form, protection).decode()


def public_pem(key=None, form=PublicFormat.SubjectPublicKeyInfo) -> str:
    return (key or pair()).public_key().public_bytes(Encoding.PEM, form).decode()


def yaml(**settings: str) -> str:
    lines = "".join(f"      {key}: |-\n{indent(value, '        ')}\n" for key, value in settings.items())
    return f"connectors:\n  - name: keys\n    type: crypto\n    settings:\n{lines}"


async def cipher_of(**settings: str) -> Cipher:
    async with runtime(yaml(**settings)) as opened:
        return opened.live("keys", Cipher)


KEY = bytes(range(32))


@pytest.mark.parametrize(
    "settings",
    [
        {"key": base64.b64encode(KEY[:16]).decode()},
        {"key": KEY[:24].hex(), "keyEncoding": "hex"},
        {"key": "0123456789abcdef0123456789abcdéf"[:31], "keyEncoding": "utf8"},
        {"algorithm": "chacha20-poly1305", "key": base64.b64encode(KEY).decode()},
        {"algorithm": "rsa-oaep", "privateKey": "PKCS8"},
        {"algorithm": "rsa-oaep", "privateKey": "PKCS1", "publicKey": "PKIX"},
        {"algorithm": "rsa-oaep", "privateKey": "PKCS8", "publicKey": "PKCS1 public"},
    ],
    ids=["aes 128", "aes 192 in hex", "aes 256 as text", "chacha", "private key alone", "pair", "other forms"],
)
async def test_what_is_sealed_can_be_unsealed_and_never_looks_the_same(settings):
    pems = {
        "PKCS8": private_pem(),
        "PKCS1": private_pem(form=PrivateFormat.TraditionalOpenSSL),
        "PKIX": public_pem(),
        "PKCS1 public": public_pem(form=PublicFormat.PKCS1),
    }
    cipher = await cipher_of(**{key: pems.get(value, value) for key, value in settings.items()})

    first, second = cipher.seal(b"secret"), cipher.seal(b"secret")

    assert first != second
    assert [cipher.unseal(first), cipher.unseal(second)] == [b"secret", b"secret"]


async def test_sealed_data_is_nonce_ciphertext_and_tag():
    cipher = await cipher_of(key=base64.b64encode(KEY).decode())
    sealed = cipher.seal(b"secret")

    assert len(sealed) == 12 + len(b"secret") + 16
    assert AESGCM(KEY).decrypt(sealed[:12], sealed[12:], None) == b"secret"


@pytest.mark.parametrize("algorithm", ["aes-gcm", "chacha20-poly1305", "rsa-oaep"])
async def test_data_that_was_altered_or_cut_is_not_unsealed(algorithm):
    settings = {"privateKey": private_pem()} if algorithm == "rsa-oaep" else {"key": base64.b64encode(KEY).decode()}
    cipher = await cipher_of(algorithm=algorithm, **settings)
    sealed = cipher.seal(b"secret")

    for wrong in (sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed[:-1], sealed[:5], b""):
        with pytest.raises(Unsealable):
            cipher.unseal(wrong)


async def test_an_rsa_key_takes_only_short_data():
    cipher = await cipher_of(algorithm="rsa-oaep", publicKey=public_pem())

    assert len(cipher.seal(bytes(190))) == 256
    with pytest.raises(OctoError) as caught:
        cipher.seal(bytes(191))
    assert str(caught.value) == "expected at most 190 bytes for an RSA key of 2048 bits, found 191"


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        ({"algorithm": "aes-gcm"}, ["`algorithm: aes-gcm` requires `key`"]),
        ({"key": "c2hvcnQ="}, ["expected a key of 16, 24 or 32 bytes for `aes-gcm`, found 5"]),
        (
            {"algorithm": "chacha20-poly1305", "key": "c2hvcnQ="},
            ["expected a key of 32 bytes for `chacha20-poly1305`, found 5"],
        ),
        ({"key": "no base64!"}, ["expected a key in base64, found other text"]),
        ({"key": "xy", "keyEncoding": "hex"}, ["expected a key in hex, found other text"]),
        (
            {"key": "c2hvcnQ=", "publicKey": "x"},
            [
                "expected a key of 16, 24 or 32 bytes for `aes-gcm`, found 5",
                "`publicKey` has no use with `algorithm: aes-gcm`",
            ],
        ),
        ({"algorithm": "rsa-oaep"}, ["`algorithm: rsa-oaep` requires `publicKey` or `privateKey`"]),
        ({"algorithm": "rsa-oaep", "publicKey": "PEM"}, ["expected a key in PEM form, found other text"]),
        ({"algorithm": "rsa-oaep", "publicKey": "private"}, ["expected a key in PEM form, found other text"]),
        ({"algorithm": "rsa-oaep", "privateKey": "protected"}, ["the key is protected by a password"]),
        ({"algorithm": "rsa-oaep", "privateKey": "curve"}, ["expected an RSA key, found a key of another kind"]),
        (
            {"algorithm": "rsa-oaep", "publicKey": "short"},
            ["expected an RSA key of at least 2048 bits, found 1024"],
        ),
        (
            {"algorithm": "rsa-oaep", "publicKey": "other", "privateKey": "private"},
            ["`publicKey` and `privateKey` are no pair"],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_keys_that_cannot_work_are_refused_without_showing_them(settings, messages):
    pems = {
        "private": private_pem(),
        "protected": private_pem(password=b"x"),
        "curve": private_pem(ec.generate_private_key(ec.SECP256R1())),
        "short": public_pem(pair(bits=1024)),
        "other": public_pem(pair(1)),
    }
    with pytest.raises(ConfigError) as caught:
        config(yaml(**{key: pems.get(value, value) for key, value in settings.items()}))

    assert [problem.message for problem in caught.value.problems] == messages


def test_without_the_extra_the_connector_is_refused_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ConfigError) as caught:
        config(yaml(key="c2hvcnQ="))

    (problem,) = caught.value.problems
    assert problem.message == "connector type `crypto` needs the package `cryptography`"
    assert problem.hint == "install it: pip install 'octo-runner[crypto]'"
