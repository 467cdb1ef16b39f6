"""Names, sections and lines of the settings; `ragtide.stream.settings.loader` puts them together."""
