"""Handles commands, admits requests, reports health."""
