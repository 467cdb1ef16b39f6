"""Send scores to tracing tools, as OpenTelemetry events.

`ScoreExport` sends the scores of one target behind a cursor; an `EventSender` delivers them. `wanted_metrics` are sent.
"""

from ragtide.drift.export.events import wanted_metrics
from ragtide.drift.export.job import EventSender, Measured, ScoreExport

__all__ = ["EventSender", "Measured", "ScoreExport", "wanted_metrics"]
