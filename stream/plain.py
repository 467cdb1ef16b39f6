"""Text of strangers, such as the name of an application, that does nothing to a terminal."""


def plain(text: str, kept: str = "") -> str:
    """What steers a terminal, breaks the line or cannot be seen stands as Python's escape: `\\x1b`, `\\n`, `\\u202e`.

    Signs of `kept` stay. The text can be printed wherever ASCII and its own visible signs can.
    """
    return "".join(sign if sign.isprintable() or sign in kept else _escaped(sign) for sign in text)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()
