"""Code that clients share: run a client, read its events and transcripts, set it up."""
