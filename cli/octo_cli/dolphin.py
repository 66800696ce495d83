"""The program `dolphin`: `octo test` under a name of its own."""

import sys

from octo_cli import __main__ as program


def main() -> None:
    """Run the command line of this process and end the process with its exit status."""
    given = sys.argv[1:]
    if given in (["version"], ["--version"]):
        import octo

        sys.stdout.write(f"dolphin {octo.__version__}\n")
        return
    sys.argv[1:] = arguments(given)
    program.main()


def arguments(given: list[str]) -> list[str]:
    """The command line of `octo` that a command line of `dolphin` stands for."""
    match given:
        case [] | ["help" | "-h" | "--help"]:
            return ["test", "--help"]
        case ["schema", *rest]:
            return ["schema", "--kind", "suite", *rest]
        case ["test", *rest]:
            return ["test", *rest]
    return ["test", *given]


if __name__ == "__main__":
    main()
