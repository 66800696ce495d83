"""octo/agent/skills.py: instructions that the model loads when it needs them."""

from fake_model import TOOL, call, reply, run

KEYS = (
    TOOL
    + """
skills:
  - {name: refunds, description: How to refund., resource: refunds.md}
"""
)


async def test_a_skill_is_rendered_on_the_message_of_the_moment():
    ran = await run(
        KEYS,
        reply("", call("t", {"sum": 5})),
        reply("", call("load_skill", {"name": "refunds"})),
        reply("done"),
        body={"sum": 1},
        vars={"who": "Ada"},
        templates={"refunds.md": "Refund {{ body.done.sum }} to {{ vars.who }}."},
    )

    assert ran.results[1] == ("Refund 5 to Ada.", False)
