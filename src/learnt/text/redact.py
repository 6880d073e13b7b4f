"""Take out of a text what must not be seen by others."""

from __future__ import annotations


def without_password(address: str) -> str:
    """Return a database address that can be shown."""
    scheme, mark, rest = address.partition("://")
    login, at, place = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}{':…' if colon else ''}{at}{_without_secret_options(place)}"


def _without_secret_options(place: str) -> str:
    path, mark, options = place.partition("?")
    shown = [option for option in options.split("&") if not option.lower().startswith(("password=", "sslpassword="))]
    return path + mark + "&".join(shown) if any(shown) else path
