"""What all clients share: how a client is run, heard, read and set up. The folder of each client holds the rest."""
