"""The phrases that sentences about problems and insights share: where, how large a share, when. Pure."""

from datetime import datetime


def whereabouts(app: str, environment: str, model: str = "", segment: str = "", segment_value: str = "") -> str:
    """How a sentence begins: the application and, in brackets, what is known besides."""
    known = [environment, f"model {model}" if model else "", f"{segment} {segment_value}" if segment else ""]
    inside = ", ".join(filter(None, known))
    return f"{app} ({inside})" if inside else app


def percent(share: float) -> str:
    """To three digits."""
    return f"{share * 100:.3g} %"


def moment(at: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
