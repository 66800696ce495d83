"""The program `octo`: `python -m octo_cli`, and the installed command."""

import signal
import sys


def main() -> None:
    """Run the command line of this process and end the process with its exit status."""
    from octo_cli import startup

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, startup.quit_at_once)
    args = sys.argv[1:]
    if args in (["version"], ["--version"]):
        import octo

        sys.stdout.write(f"octo {octo.__version__}\n")
        startup.leave(0)
    startup.leave(startup.run(args))


if __name__ == "__main__":
    main()
