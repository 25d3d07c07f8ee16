"""Why a request did not get more from the cache: two requests side by side, or a whole log."""
