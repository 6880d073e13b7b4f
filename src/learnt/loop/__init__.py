"""Work through queued tasks: run agents, and end all processes that they started."""
