"""What documentation, forms and programs put where a secret would stand."""

_FEW = 5  # different characters; fewer are a filler such as 0123 or xxxx
_FILLERS = ("your", "placeholder", "changeme", "change_me", "change-me", "redacted", "insert", "replace", "dummy")
_MARKS = ("xxxx", "****", "....", "<", "${", "{{", "not-a-real", "todo", "_here", "-here")
_CODE = ("os.", "env.", "process.", "config.", "settings.", "self.", "this.", "getenv", "secrets.", "vault:", "var.")


def is_made_up(value: str) -> bool:
    """Whether it is a filler such as xxxxxxxx, or says that it is one."""
    low = value.lower()
    return len(set(value)) < _FEW or any(word in low for word in (*_FILLERS, *_MARKS))


def is_code(value: str) -> bool:
    """Whether a program or a template would put the secret there when it runs."""
    return value[0] in "$<{%&/~" or "(" in value or "[" in value or "://" in value or value.lower().startswith(_CODE)
