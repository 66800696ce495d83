"""The program `octo`: `python -m octo_cli`, and the installed command."""

import os
import sys


def quit_at_once(*_: object) -> None:
    """The signal handler of the start-up: nothing is open yet, so there is nothing to close."""
    os._exit(130)


def main() -> None:
    """Run the command line of this process and end the process with its exit status."""
    try:
        import signal  # takes a while, and a Ctrl-C meanwhile is still an exception

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, quit_at_once)
    except KeyboardInterrupt:
        quit_at_once()
    from octo_cli import startup

    startup.leave(startup.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
