"""Versions of a prompt held against each other by what logs say of them."""
