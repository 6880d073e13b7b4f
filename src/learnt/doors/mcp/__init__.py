"""The door for clients that speak the Model Context Protocol, through the official SDK.

`tools` holds what an agent can call, `words` formats the answers, `server` connects both to the SDK, and `http` checks
who may connect over HTTP. Only `learnt mcp` imports this package.
"""
