"""The door for clients that speak the Model Context Protocol, through the official SDK.

`tools` contains the functions that an agent can call, `words` formats the answers, `server` connects both to the SDK,
and `http` checks the connections over HTTP. Only `learnt mcp` imports this package.
"""
