"""The distribution of modestream: one command, over an application that lies in the folder `application`."""
