"""Work through queued tasks: run agents, and end all processes that the agents started."""
