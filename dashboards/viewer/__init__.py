"""Built-in viewer: serves the dashboards' JSON and their queries, and draws them in the browser. Read only."""
