"""Reasons why the regions of a trace cannot be compared."""


class Malformed(ValueError):
    """The regions are not as in `ragtide.evaluators.vision.regions`. The message says how, and quotes nothing."""


class TooLarge(ValueError):
    """The comparison would take longer than a record may."""
