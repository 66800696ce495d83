"""octo/agent/memory/keys.py: the key of a memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo.agent.memory import keys

PLAIN = "0c3f4b5e-0000-4000-8000-00000000000a"


@pytest.mark.parametrize(
    ("workspace", "flow", "id", "key"),
    [
        ("ai-agent", "enrich", "customer-1", "a50aa946-4690-51c3-a731-9eda2ff3b248"),
        ("ai-agent", "enrich", " customer-1 ", "a50aa946-4690-51c3-a731-9eda2ff3b248"),
        ("ai-agent", "describe", "customer-1", "045ba5f9-e7a7-5d0c-94be-b26ce016d91c"),
        ("other", "enrich", "customer-1", "155945cb-d8ba-5232-8aaa-206e374f2601"),
        ("", "enrich", "customer-1", "1310800a-dd0b-5f8f-b6f8-e3631391dfb6"),
        ("ai-agent", "enrich", "42", "034887d4-58ec-51dc-9900-b90d15a2d042"),
        ("any", "any", "{0C3F4B5E-0000-4000-8000-00000000000A}", PLAIN),
    ],
)
def test_an_id_has_its_published_key(workspace, flow, id, key):
    assert keys.key(id, workspace=workspace, flow=flow) == key


@pytest.mark.parametrize(
    "spelling",
    [
        PLAIN,
        PLAIN.upper(),
        f"\t{PLAIN}\n",
        PLAIN.replace("-", ""),
        f"urn:uuid:{PLAIN}",
        f"URN:UUID:{PLAIN.upper()}",
        f"{{{PLAIN}}}",
    ],
)
def test_every_spelling_of_a_uuid_is_the_same_key_everywhere(spelling):
    assert keys.key(spelling, workspace="shop", flow="order") == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        "0c3f4b5e0000-4000-8000-00000000000a",
        "0c3f-4b5e-0000-4000-8000-0000-0000-000a",
        f"{{{PLAIN}",
        f"{PLAIN}}}",
        f"{{{PLAIN.replace('-', '')}}}",
        f"urn:uuid:{{{PLAIN}}}",
        f"urn:uuid:{PLAIN.replace('-', '')}",
        f"uuid:{PLAIN}",
        f"{PLAIN}0",
        PLAIN.replace("0c", "\uff10c"),
        PLAIN.replace("0c", "\u0660c"),
        PLAIN.replace("0c", "gc"),
        "",
    ],
)
def test_nothing_else_is_a_uuid(text):
    assert keys.uuid(text) is None


def test_an_id_is_taken_as_it_is_written_but_for_the_space_around():
    composed, decomposed = "caf\u00e9", "cafe\u0301"

    assert len({keys.key(id, workspace="w", flow="f") for id in (composed, decomposed, composed.upper())}) == 3


def test_half_a_character_in_an_id_is_no_fault():
    assert keys.key("\ud83d", workspace="w", flow="f") == keys.key("\ufffd", workspace="w", flow="f")


named = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@given(named, named, named, named)
def test_where_one_part_ends_and_the_next_begins_makes_a_difference(a, b, c, d):
    one = keys.key(c, workspace=a, flow=b + d)
    other = keys.key(d + c, workspace=a, flow=b)

    assert (one == other) == (keys.uuid(c) is not None and keys.uuid(c) == keys.uuid(d + c))
