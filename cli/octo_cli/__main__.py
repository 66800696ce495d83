"""The program `octo`: `python -m octo_cli`, and the installed command."""

import signal
import sys


def main() -> None:
    """Run the command line of this process and end the process with its exit status."""
    from octo_cli import startup

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, startup.quit_at_once)
    startup.leave(startup.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
