"""octo/llm/aws.py: frames of event streams, credentials of AWS, signatures."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octo.errors import AuthenticationFailed, ConnectorError
from octo.llm import aws
from octo.llm.aws import Chain, Frames, Keys, Signer
from octo.llm.framing import Damaged
from octo.llm.wire import HttpCall
from vendor import sigv4
from vendor.bedrock import KEYS, REGION, SERVICE, event, exception, frame
from vendor.server import Request
from vendor.sigv4 import KeyPair

STREAM = [
    event("messageStart", {"role": "assistant"}),
    event("contentBlockDelta", {"delta": {"text": "naïve — 日本 😀"}, "contentBlockIndex": 0}),
    frame(b"", event_type="initial-response", message_type="event"),
    exception("throttlingException", "slow down"),
    frame(b"", error_code="InternalError", error_message="it broke", message_type="error"),
    frame(b"{}", message_type="of-a-later-version"),
]
EVENTS = [
    {"event": "messageStart", "payload": {"role": "assistant", "p": "abcdefgh"}},
    {
        "event": "contentBlockDelta",
        "payload": {"delta": {"text": "naïve — 日本 😀"}, "contentBlockIndex": 0, "p": "abcdefgh"},
    },
    {"event": "initial-response", "payload": None},
    {"exception": "throttlingException", "payload": {"message": "slow down"}},
    {"exception": "InternalError", "payload": {"message": "it broke"}},
]


def events(*chunks: bytes) -> list[object]:
    framing = Frames()
    found = [data for chunk in chunks for data in framing.feed(chunk)]
    return [json.loads(data) for data in (*found, *framing.finish())]


# ---------------------------------------------------------------- frames


@given(cuts=st.lists(st.integers(0, len(b"".join(STREAM))), max_size=30))
@settings(max_examples=150, deadline=None)
def test_the_events_do_not_depend_on_how_the_network_cuts_the_frames(cuts: list[int]):
    stream = b"".join(STREAM)
    places = [0, *sorted(cuts), len(stream)]

    assert events(*(stream[a:b] for a, b in pairwise(places))) == EVENTS


def test_single_bytes_give_the_same_events():
    assert events(*(bytes([byte]) for byte in b"".join(STREAM))) == EVENTS


def test_headers_of_every_kind_of_value_are_read_over():
    """Truth, bytes of several widths, a text, a time and an id beside the ones that count."""
    import struct
    import zlib

    values = b"".join(
        bytes([2]) + b":" + name + bytes([kind]) + value
        for name, kind, value in (
            (b"a", 0, b""),
            (b"b", 1, b""),
            (b"c", 2, b"\x01"),
            (b"d", 3, b"\0\x01"),
            (b"e", 4, b"\0\0\0\x01"),
            (b"f", 5, b"\0" * 8),
            (b"g", 6, b"\0\x02hi"),
            (b"h", 8, b"\0" * 8),
            (b"i", 9, b"\0" * 16),
        )
    )
    plain = event("messageStart", {"role": "assistant"})
    length = struct.unpack(">I", plain[4:8])[0]
    head, payload = plain[12 : 12 + length] + values, plain[12 + length : -4]
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload

    assert events(start + struct.pack(">I", zlib.crc32(start))) == EVENTS[:1]


def test_an_unfinished_frame_at_the_end_is_dropped():
    assert events(STREAM[0], STREAM[1][:-1]) == EVENTS[:1]


@pytest.mark.parametrize("at", range(0, len(STREAM[1]), 7))
def test_a_changed_bit_is_found_wherever_it_is(at: int):
    spoilt = bytearray(STREAM[1])
    spoilt[at] ^= 1

    with pytest.raises(Damaged, match="a frame of it is damaged: "):
        events(STREAM[0], bytes(spoilt), b"\0" * 2**16)


def test_events_before_a_damaged_frame_count_however_they_are_cut():
    framing, spoilt = Frames(), STREAM[1][:-1] + b"!"

    assert list(map(json.loads, framing.feed(STREAM[0] + spoilt))) == EVENTS[:1]
    with pytest.raises(Damaged, match="checksum mismatch"):
        framing.finish()


@pytest.mark.parametrize("prelude", [b"\xff\xff\xff\xff\0\0\0\0", b"\x02\0\0\0\0\0\0\0", b"\0\0\x01\0\xff\0\0\0"])
def test_impossible_lengths_are_damage(prelude: bytes):
    import zlib

    with pytest.raises(Damaged):
        events(prelude + zlib.crc32(prelude).to_bytes(4, "big") + b"\0" * 64)


def test_what_begins_a_stream():
    assert [Frames().is_stream(head) for head in (STREAM[0], STREAM[0][:3], b"", b"<html>", b"{}", b"data: {}")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


# ---------------------------------------------------------------- signatures


def call(
    url: str = "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b%3A0/converse", **headers: str
) -> HttpCall:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return HttpCall(url, (("content-type", "application/json"), *named), b'{"a":1}')


def arrived(call: HttpCall) -> Request:
    """A call as it arrives at a server."""
    _, _, rest = call.url.partition("://")
    host, slash, target = rest.partition("/")
    path, _, query = (slash + target).partition("?")
    headers = {name.lower(): value.encode().decode("latin-1") for name, value in call.headers}
    return Request(call.method, path, query, {"host": host, **headers}, call.body, 1)


@pytest.mark.parametrize(
    "sent",
    [
        call(),
        call("http://localhost:8080/gw/model/arn%3Aaws%3Ax%2Fy/converse-stream?b=2&a=1"),
        call(x_team=" a   b ", X_Amz_Other="1", x_name="é"),
    ],
    ids=["plain", "port, query and slash", "more headers"],
)
@pytest.mark.parametrize("keys", [KEYS, KeyPair("AKID2", "s/+=", "token==")], ids=["pair", "with a token"])
def test_a_signed_call_is_what_aws_expects(sent: HttpCall, keys: KeyPair):
    found = aws.signed(sent, Keys(keys.id, keys.secret, keys.token), REGION)

    assert sigv4.fault(arrived(found), keys, REGION, SERVICE) is None
    assert found.headers[: len(sent.headers)] == sent.headers
    assert found.body == sent.body


@pytest.mark.parametrize(
    ("keys", "region"), [(KeyPair(secret="other"), REGION), (KEYS, "eu-west-1")], ids=["secret", "region"]
)
def test_another_signature_is_refused(keys: KeyPair, region: str):
    found = aws.signed(call(), Keys(KEYS.id, KEYS.secret), REGION)

    assert sigv4.fault(arrived(found), keys, region, SERVICE) is not None


async def test_a_call_that_carries_a_key_is_not_signed():
    sent = call(Authorization="Bearer k")

    assert await Signer(REGION, Keys("a", "b"), Chain({}))(sent) == sent


async def test_keys_that_signed_are_masked_wherever_a_text_quotes_them():
    signer = Signer(REGION, Keys("AKIDSECRET", "very/secret", "session-token"), Chain({}))
    await signer(call())

    assert signer.mask("AKIDSECRET signed x-amz-security-token:session-token") == "*** signed x-amz-security-token:***"


# ---------------------------------------------------------------- the chain

NOWHERE = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}


@pytest.fixture
def profiles(tmp_path: Path) -> dict[str, str]:
    """An environment in which AWS's own files declare two profiles."""
    config, credentials = tmp_path / "config", tmp_path / "credentials"
    config.write_text("[default]\nregion = eu-west-3\n[profile team]\nregion = ap-south-1\n", encoding="utf-8")
    credentials.write_text(
        "[default]\naws_access_key_id = AKIDDEFAULT\naws_secret_access_key = s1\n"
        "[team]\naws_access_key_id = AKIDTEAM\naws_secret_access_key = s2\naws_session_token = t2\n",
        encoding="utf-8",
    )
    return NOWHERE | {"AWS_CONFIG_FILE": str(config), "AWS_SHARED_CREDENTIALS_FILE": str(credentials)}


def test_the_chain_reads_the_environment_that_it_is_given():
    environ = NOWHERE | {"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}

    assert Chain(environ).keys() == Keys("AKIDENV", "s", "t")


def test_the_chain_reads_profiles(profiles: dict[str, str]):
    assert Chain(profiles).keys() == Keys("AKIDDEFAULT", "s1")
    assert Chain(profiles | {"AWS_PROFILE": "team"}).keys() == Keys("AKIDTEAM", "s2", "t2")


async def test_calls_at_once_share_one_look_at_the_chain(profiles: dict[str, str]):
    signer = Signer(REGION, None, Chain(profiles))
    found = await asyncio.gather(*(signer(call()) for _ in range(5)))

    assert [sigv4.fault(arrived(one), KeyPair("AKIDDEFAULT", "s1"), REGION, SERVICE) for one in found] == [None] * 5


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "no credentials of AWS were found"),
        ({"AWS_PROFILE": "gone"}, "no credentials of AWS: the config profile (gone) could not be found"),
        (
            {"AWS_ACCESS_KEY_ID": "AKIDHALF"},
            "no credentials of AWS: partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY",
        ),
    ],
    ids=["nothing", "unknown profile", "half a pair"],
)
async def test_a_chain_without_credentials_says_so(environ: dict[str, str], text: str):
    with pytest.raises(AuthenticationFailed) as caught:
        await Signer(REGION, None, Chain(NOWHERE | environ))(call())

    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("setting", "environ", "expected"),
    [
        ("us-west-2", {"AWS_REGION": "eu-west-1"}, "us-west-2"),
        (" ", {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-1"),
        ("", {"AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2"),
        ("", {}, "eu-west-3"),
        ("", {"AWS_PROFILE": "team"}, "ap-south-1"),
    ],
    ids=["setting", "AWS_REGION", "AWS_DEFAULT_REGION", "default profile", "named profile"],
)
def test_who_says_the_region(profiles: dict[str, str], setting: str, environ: dict[str, str], expected: str):
    environ = profiles | environ

    assert aws.region_of(setting, environ, Chain(environ)) == expected


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "no region is named"),
        ({"AWS_REGION": "us-east-1.evil.example/"}, "expected the name of a region, such as `us-east-1`, found"),
        ({"AWS_PROFILE": "gone"}, "the settings of AWS cannot be used: the config profile (gone) could not be found"),
    ],
    ids=["none", "no region", "unknown profile"],
)
def test_without_a_region_there_is_no_call(environ: dict[str, str], text: str):
    environ = NOWHERE | environ
    with pytest.raises(ConnectorError) as caught:
        aws.region_of("", environ, Chain(environ))

    assert str(caught.value).startswith(text)
