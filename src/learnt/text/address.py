"""Show the address of a database without its password."""

from __future__ import annotations


def without_password(address: str) -> str:
    """Return a database address that can be shown."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return "…"  # no address at all: nobody knows what stands in it
    login, at, place = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}{':…' if colon else ''}{at}{_without_secret_options(place)}"


def without_password_of(address: str, text: str) -> str:
    """Return a text about an address, such as a driver's error, without the address's password."""
    password = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return text.replace(password, "…") if password else text


def _without_secret_options(place: str) -> str:
    path, mark, options = place.partition("?")
    shown = [option for option in options.split("&") if not option.lower().startswith(("password=", "sslpassword="))]
    return path + mark + "&".join(shown) if any(shown) else path
