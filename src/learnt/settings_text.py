"""Settings as text: the file that `init` writes, and examples for the documentation."""

from __future__ import annotations

import textwrap

from learnt.settings import AGENTS, CONSENT, SETTINGS, Setting, agent_key, as_toml, example_value


def render_template() -> str:
    """Return a project's settings file with all settings that it may contain, commented out."""
    lines = [
        "# Settings of learnt for this project; `learnt config` shows the values in effect and where they come from.",
        "",
    ]
    for setting in SETTINGS:
        if setting.by != "user":
            lines += [f"# {line}" for line in _wrap(setting.meaning + CONSENT.get(setting.by, ""))]
            lines += [*(f"# {line}" for line in example_lines(setting)), ""]
    return "\n".join(lines)


def example_lines(setting: Setting) -> list[str]:
    """Return the lines for a settings file that show how to set this setting."""
    if setting.key == "agents":
        return [f"{agent_key(name)} = {as_toml(categories)}" for name, categories in AGENTS.items()]
    return [f"{setting.key} = {as_toml(example_value(setting))}"]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 100)
