"""Runs handed out: as a bundle, as tables, as a report that needs nothing else, as Markdown for an issue."""
