"""Why a prompt missed: the reason, the first difference, what it cost and what to do."""
