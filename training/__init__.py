"""How the models that come with the project are made. Nothing here is needed to run it."""
