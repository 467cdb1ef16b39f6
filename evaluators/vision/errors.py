"""Why the regions of a trace cannot be compared."""


class Malformed(ValueError):
    """They are not what `ragtide.evaluators.vision.regions` takes; the message says what is, and quotes nothing."""


class TooLarge(ValueError):
    """Comparing them would take longer than a record may."""
