"""Names, sections and lines of the settings; `stream.settings` puts them together."""
