"""Connections to the outside: embedders, chat models, session files, files for people, folders, OpenTelemetry."""
