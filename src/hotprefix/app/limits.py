"""What the operating system lets this process have."""

from __future__ import annotations

import contextlib
import resource

_MOST_FILES = 65_536


def raise_open_files() -> None:
    """Raise the soft limit of open files to the hard one, 65,536 at most.

    Every connection is an open file, and the usual soft limit of 1,024 is soon reached: beyond it
    new connections are cut off.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # A system that refuses leaves the server as it is: with fewer connections.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
