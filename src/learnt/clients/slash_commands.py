"""Prompts that begin with a command of the client's: `/fix the mail tests` asks for work, `/compact` does not."""

from __future__ import annotations

# What stands behind these is for the client itself; what stands behind `/plan` and `/review` is work.
_OWN = frozenset(
    "about add-dir agent agents app approvals archive auth bashes bug cd chat clear color commands compact "
    "compress config connect context copy corgi cost daemon debug-config delete desktop dir directory "
    "doctor editor effort exit experimental export extensions extra-usage fast feedback fork help hooks ide "
    "init insights install-github-app keybindings keymap login logout mcp mcps memories memory mobile model models "
    "org output-style passes permissions personality plugin plugins policies pr-comments privacy "
    "privacy-settings ps pwd quit raw recap redo release-notes reload-plugins remote-control remote-env rename reset "
    "restore resume rewind rollout sandbox sessions settings setup-github share shells "
    "skills stats status statusline stickers tasks terminal terminal-setup theme themes thinking timeline timestamps "
    "title todos tools tui undo unshare upgrade usage variants vim voice warp workspace workspaces".split()
)


def asked(prompt: str) -> str:
    """Return what a person asks for: the words behind a command, all where there is none, as in `/srv/app.py fails`."""
    word, _, rest = " ".join(prompt.split(None, 1)).partition(" ")
    if len(word) < 2 or "/" in word[1:]:
        return prompt
    return "" if word[1:].lower() in _OWN else rest.strip()
