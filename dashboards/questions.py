"""The panels of questions: what is asked about, and what becomes of an answer when a question is worded otherwise."""

from collections.abc import Iterator

from dashboards import questions_sql as ask
from dashboards.panels import rows, stacked
from dashboards.sdk import table, timeseries
from dashboards.sql import Tables

TITLE = "Questions: topics and perturbations"


def questions(tables: Tables) -> Iterator[timeseries.Panel | table.Panel]:
    """Topics over time; flip rates of what was perturbed, and the pairs behind them. Empty where there is none."""
    says = "By the topic that each was placed in on arrival, of the model that held then: the 20 that most are of. "
    says += "Other: of no topic. Questions from before there was a model, and without embeddings, are not shown."
    yield stacked("Questions by topic", says, ask.by_topic(tables), "short", 24).display_name("${__field.labels.name}")
    says = "How often a metric of a perturbed question lies on the other side of its threshold than the original's, by "
    says += "techniques with their intensities, in the order applied; at least and at most: its interval of 95 %. "
    says += "Traces with a relationship perturbation_of have a row here, others none."
    shares = dict.fromkeys(("flip rate", "at least", "at most"), "percentunit")
    yield rows("Flips by technique", says, ask.flip_rates(tables), 24, shares)
    says = "The newest pairs that flipped, with the ids of both traces."
    yield rows("Flipped pairs", says, ask.flipped(tables), 24)
