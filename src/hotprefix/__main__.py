"""`python -m hotprefix` is the `hotprefix` command."""

from hotprefix.app.cli import main

if __name__ == "__main__":
    main()
