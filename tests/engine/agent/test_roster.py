"""octo/agent/roster.py: the tools of an agent together."""

from fake_model import TOOL, reply, run


async def test_a_run_is_offered_the_tools_that_are_enabled():
    ran = await run(TOOL + "enabledTools: []\n", reply("done"))

    assert ran.requests[0].tools == ()
