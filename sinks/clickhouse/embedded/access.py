"""Rights of statements on the engine: its own access control, written as its configuration.

The one user (chDB 4.4 has no other) gets tables and rows, no source outside of them: `file`, `url`, `remote`, `s3`,
`executable` and their like, dictionaries, functions, users, backups and SYSTEM statements need grants that it lacks.
"""

from pathlib import Path
from xml.sax.saxutils import escape

GRANTS = (
    *("SHOW", "SELECT", "INSERT", "OPTIMIZE", "TRUNCATE", "KILL QUERY", "ALTER TABLE", "ALTER VIEW"),
    *("CREATE DATABASE", "CREATE TABLE", "CREATE VIEW", "DROP DATABASE", "DROP TABLE", "DROP VIEW"),
)
_USERS = """<clickhouse>
<profiles><default></default></profiles>
<quotas><default></default></quotas>
<users><default>
<password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
<grants><query>GRANT {grants} ON *.*</query></grants>
</default></users>
</clickhouse>
"""
_SERVER = """<clickhouse>
<users_config>{users}</users_config>
<user_files_path>{files}</user_files_path>
</clickhouse>
"""


def write_configuration(folder: Path, files: Path) -> Path:
    """Write the engine's configuration into the folder and return its file; `files` is where user files would lie."""
    users, server = folder / "users.xml", folder / "config.xml"
    users.write_text(_USERS.format(grants=", ".join(GRANTS)))
    server.write_text(_SERVER.format(users=escape(str(users)), files=escape(f"{files}/")))
    return server
