"""The `hotprefix` command, also as `python -m hotprefix`.

The rest is loaded when the command runs: Ctrl-C while that takes its time leaves no traceback.
"""

import sys


def main() -> None:
    """Entry point."""
    try:
        from hotprefix.app.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
