"""Panels of questions: topics, flips of perturbed ones, and consistency of repeated ones."""

from collections.abc import Iterator

from ragtide.dashboards import questions_sql as ask
from ragtide.dashboards.panels import rows, stacked_bars
from ragtide.dashboards.sdk import table, timeseries
from ragtide.dashboards.sql import Tables

TITLE = "Questions: topics, perturbations and repetitions"


def questions(tables: Tables) -> Iterator[timeseries.Panel | table.Panel]:
    """Topics over time; rates and pairs of perturbed and of repeated questions. Empty if there are none."""
    says = "By the topic that each was placed in on arrival, of the model that held then: the 20 that most are of. "
    says += "Other: of no topic. Questions from before there was a model, and without embeddings, are not shown."
    yield stacked_bars("Questions by topic", says, ask.by_topic(tables), "short", 24).display_name(
        "${__field.labels.name}"
    )
    says = "How often a metric of a perturbed question lies on the other side of its threshold than the original's, by "
    says += "techniques with their intensities, in the order applied; at least and at most: its interval of 95 %. "
    says += "Traces with a relationship perturbation_of have a row here, others none."
    shares = dict.fromkeys(("flip rate", "at least", "at most"), "percentunit")
    yield rows("Flips by technique", says, ask.flip_rates(tables), 24, shares)
    says = "The newest pairs that flipped, with the ids of both traces."
    yield rows("Flipped pairs", says, ask.newest_flips(tables), 24)
    says = (
        "The share of questions asked again, word for word, that are inconsistent; at least and at most: its interval "
    )
    says += (
        "of 95 %. By metric: good on the mean of the last answers and bad at least once. answers.agreement: what the "
    )
    says += "answers say disagrees. Of the newest look in the time range, which speaks of about a day before it; a "
    says += "problem where at least is above the limit."
    shares = dict.fromkeys(("inconsistent", "at least", "at most", "limit"), "percentunit")
    yield rows("Questions asked again", says, ask.consistency(tables), 24, shares)
    says = (
        "Some of the inconsistent questions, by the trace ids of two of their answers: the one at odds with others, or "
    )
    says += "with the worst score, and another, or that with the best. By score, refusal, stance (yes or no), claims "
    says += "(figures) or meaning."
    yield rows("Answers that disagree", says, ask.answer_conflicts(tables), 24)
