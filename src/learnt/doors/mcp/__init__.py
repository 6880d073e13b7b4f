"""The door for agents whose client speaks the Model Context Protocol, through the official SDK.

`tools` holds what an agent can call, `words` how it is told, `server` ties both to the SDK, `http` guards the door
where it is open to more than the client that started it. Nothing here is imported but by `learnt mcp`.
"""
