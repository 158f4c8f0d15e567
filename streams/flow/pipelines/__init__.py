"""The pipelines of the deployment: revisions as read, the one in force, and its steps ready to run."""
