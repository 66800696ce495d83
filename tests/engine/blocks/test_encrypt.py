"""octo/blocks/encrypt.py, octo/blocks/decrypt.py: there and back."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from octo.errors import BlockError, ConfigError
from octo.testing.harness import config

KEY = base64.b64encode(bytes(range(32))).decode()
PUBLIC = rsa.generate_private_key(65537, 2048).public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()


def flow(*blocks: str, settings: str = f"key: '{KEY}'") -> str:
    lines = "".join(f"\n                - {{ crypto: keys, {block} }}" for block in blocks)
    return f"""
          connectors: [{{ name: keys, type: crypto, settings: {{ {settings} }} }}]
          flows:
            - name: main
              process:{lines}
    """


@pytest.mark.parametrize(
    ("body", "plain"),
    [("é", "é"), ({"b": 1.0, "a": [None]}, '{"a":[null],"b":1}'), (None, "null"), ("half \ud83d", "half \ufffd")],
    ids=["text", "mapping", "nothing", "half a character"],
)
async def test_the_body_is_encrypted_and_comes_back_as_text(run_flow, body, plain):
    sealed = await run_flow(flow("type: encrypt"), body)
    opened = await run_flow(flow("type: decrypt"), sealed.body)

    assert len(base64.b64decode(sealed.body)) == 12 + len(plain.encode()) + 16
    assert opened.body == plain


async def test_values_targets_and_hexadecimal_digits(run_flow):
    message = await run_flow(
        flow(
            "type: encrypt, value: body.card, encoding: hex, target: sealed",
            "type: decrypt, value: vars.sealed, encoding: hex, target: opened",
        ),
        {"card": "4111"},
    )

    assert message.body == {"card": "4111"}
    assert set(message.vars["sealed"]) <= set("0123456789abcdef")
    assert message.vars["opened"] == "4111"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        ("?", "base64"),
        ("", "base64"),
        ("AAAA", "base64"),
        ("xyz", "hex"),
        ("é", "hex"),
        (base64.b64encode(bytes(40)).decode(), "base64"),
    ],
    ids=["no base64", "empty", "too short", "no hex", "no ASCII", "altered"],
)
async def test_what_cannot_be_decrypted_fails_with_one_text(run_flow, body, encoding):
    with pytest.raises(BlockError) as caught:
        await run_flow(flow(f"type: decrypt, encoding: {encoding}"), body)

    assert str(caught.value) == 'block "decrypt": decrypt: the value cannot be decrypted'


async def test_what_was_no_text_before_is_none_after(run_flow):
    sealed = b"\x00" * 12 + AESGCM(bytes(range(32))).encrypt(b"\x00" * 12, b"\xff\xfe", None)

    with pytest.raises(BlockError) as caught:
        await run_flow(flow("type: decrypt"), base64.b64encode(sealed).decode())

    assert str(caught.value) == 'block "decrypt": decrypt: what was encrypted is not UTF-8 text'


async def test_only_text_can_be_decrypted(run_flow):
    with pytest.raises(BlockError) as caught:
        await run_flow(flow("type: decrypt"), {"a": 1.0})

    assert str(caught.value) == 'block "decrypt": decrypt value must be text, got a mapping'


def rsa_settings() -> str:
    return f"algorithm: rsa-oaep, publicKey: {PUBLIC!r}".replace("'", '"')


async def test_data_that_is_too_long_for_the_key_fails_the_block(run_flow):
    with pytest.raises(BlockError) as caught:
        await run_flow(flow("type: encrypt", settings=rsa_settings()), "x" * 191)

    assert str(caught.value) == (
        'block "encrypt": encrypt: expected at most 190 bytes for an RSA key of 2048 bits, found 191'
    )
    assert caught.value.hint == "encrypt the data with `aes-gcm`, and only its key with `rsa-oaep`"


def test_a_public_key_alone_cannot_decrypt():
    with pytest.raises(ConfigError) as caught:
        config(flow("type: decrypt", settings=rsa_settings()))

    (problem,) = caught.value.problems
    assert problem.message == 'decrypt: connector "keys" has no private key'
    assert problem.hint == "add `privateKey` to the connector"
