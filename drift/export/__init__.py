"""Send scores to tracing tools, as OpenTelemetry events.

`ScoreExport` sends the scores of one target behind a cursor; an `EventSender` delivers them.
"""

from ragtide.drift.export.job import EventSender, Measured, ScoreExport

__all__ = ["EventSender", "Measured", "ScoreExport"]
