"""Five plausible applications, as their producers send them: question, chunks and answer about one of their topics."""

import math
import random
from dataclasses import dataclass
from datetime import datetime

from ragtide.evaluators.trace import AppError, Chunk, Latency, Model, Tokens, Trace

_FILLER = (
    "Please keep the confirmation until the process is complete.",
    "The same steps apply to the mobile application.",
    "Administrators can change this setting for the whole team.",
    "This usually takes a few minutes, and no more than a day.",
    "Older versions show this option in another menu.",
    "A summary is sent once everything is done.",
)
_FAILING, _REFUSED = 0.02, 0.02  # of healthy traces
_REFUSAL = "I'm sorry, but I can't help with that request."


@dataclass(frozen=True, slots=True)
class Topic:
    """What users ask, the sentences that the index holds about it, and the answer; `{n}` is a number of that trace."""

    question: str
    facts: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Application:
    """One application: `seconds` and `usd` are medians, `sigma` the spread of the logarithm of its latency."""

    name: str
    model: str
    topics: tuple[Topic, ...]
    seconds: float
    sigma: float
    usd: float
    task: str | None = None

    def trace(self, environment: str, trace_id: str, at: datetime, rng: random.Random) -> Trace:
        """One healthy trace."""
        topic, n = rng.choice(self.topics), rng.randrange(2, 90)
        fails, refuses = rng.random() < _FAILING, rng.random() < _REFUSED
        facts = [fact.format(n=n) for fact in topic.facts]
        texts = [" ".join(facts), " ".join(rng.sample(_FILLER, 3))]
        generation_s = self.seconds * math.exp(rng.gauss(0.0, self.sigma))
        retrieval_s = 0.05 * math.exp(rng.gauss(0.0, 0.3))
        words = sum(len(text.split()) for text in texts)
        spent = self.usd * math.exp(rng.gauss(0.0, 0.25))
        return Trace(
            trace_id=trace_id,
            time=at,
            app=self.name,
            environment=environment,
            session_id=f"session-{rng.randrange(400)}",
            question=topic.question.format(n=n),
            answer=None if fails else _REFUSAL if refuses else topic.answer.format(n=n),
            error=AppError("UpstreamTimeout") if fails else None,
            contexts=tuple(Chunk(id=f"{self.name}-{i}", text=text, rank=i) for i, text in enumerate(texts, 1)),
            model=Model(requested=self.model, served=self.model, prompt_version="v1"),
            latency=Latency(retrieval_s + generation_s, retrieval_s, generation_s),
            tokens=Tokens(input=words * 3 // 2 + 200, output=len(topic.answer.split()) * 3 // 2),
            cost_usd=round(spent, 6),
            task=self.task,
        )


SUPPORT = Application(
    "support-bot",
    "gpt-small",
    (
        Topic(
            "How can I reset my password?",
            ("Open Settings and choose Security.", "Press Reset password, and a link arrives within {n} minutes."),
            "Open Settings, choose Security and press Reset password. The link arrives within {n} minutes.",
        ),
        Topic(
            "Can I return shoes after {n} days?",
            ("Items can be returned within {n} days of delivery.", "Shoes must be unworn and in their box."),
            "Yes. You can return unworn shoes in their box within {n} days of delivery.",
        ),
        Topic(
            "When will my order be shipped?",
            ("Orders are shipped within {n} hours.", "You get a message with a tracking link."),
            "Your order is shipped within {n} hours. You then get a message with a tracking link.",
        ),
    ),
    seconds=1.1,
    sigma=0.45,
    usd=0.0008,
)
DOCS = Application(
    "developer-docs",
    "code-model",
    (
        Topic(
            "How do I set a timeout of {n} seconds in the client?",
            ("The constructor of Client takes timeout in seconds.", "The default is ten; {n} is allowed."),
            "Pass it to the constructor:\n\n```python\nclient = Client(timeout={n})\n```\n\nThe value is in seconds.",
        ),
        Topic(
            "What does error 4{n} mean?",
            ("Error 4{n} means that the token has expired.", "Call refresh() and send the request again."),
            "Error 4{n} means that the token has expired. Call `refresh()` and send the request again.",
        ),
        Topic(
            "How are results paged?",
            ("A page has {n} results.", "The field next holds the cursor of the next page, or null on the last one."),
            'A page has {n} results. Read the field `next`, as in `{{"next": "c{n}"}}`, and pass it on as `cursor`.',
        ),
    ),
    seconds=2.4,
    sigma=0.6,
    usd=0.004,
)
LEGAL = Application(
    "contract-search",
    "long-context",
    (
        Topic(
            "Under which conditions may the supplier terminate the agreement?",
            (
                "The supplier may terminate the agreement for material breach that is not remedied within {n} days.",
                "Termination for convenience requires written notification of the contracting authority.",
            ),
            "Pursuant to clause {n}, the supplier may terminate the agreement for material breach, provided that the "
            "breach is not remedied within {n} days of written notification by the contracting authority.",
        ),
        Topic(
            "Which limitation of liability applies to consequential damages?",
            (
                "Liability for consequential damages is excluded, except in cases of intent or gross negligence.",
                "Aggregate liability is limited to {n} percent of the annual remuneration.",
            ),
            "Liability for consequential damages is excluded, except in cases of intent or gross negligence. Aggregate "
            "liability is limited to {n} percent of the annual remuneration, irrespective of the legal basis.",
        ),
    ),
    seconds=6.0,
    sigma=0.8,
    usd=0.03,
)
SHOP = Application(
    "shop-assistant",
    "gpt-small",
    (
        Topic(
            "Do you have hiking boots in size {n}?",
            ("The Ridge boot comes in sizes up to {n} and costs 129.90 EUR.", "It is waterproof and weighs 540 grams."),
            "Yes, the Ridge boot is available in size {n} for 129.90 EUR. It is waterproof and weighs 540 grams.",
        ),
        Topic(
            "Which tent fits {n} people?",
            ("The Delta tent sleeps {n} people.", "Article 4711-{n} is in stock in the store in Main Street."),
            "The Delta tent (article 4711-{n}) sleeps {n} people. It is in stock in the store in Main Street.",
        ),
        Topic(
            "How do I wash a down jacket?",
            ("Wash down at {n} degrees with a mild detergent.", "Dry it with two tennis balls at low heat."),
            "Wash it at {n} degrees with a mild detergent, and dry it with two tennis balls at low heat.",
        ),
    ),
    seconds=0.8,
    sigma=0.35,
    usd=0.0005,
)
NEWS = Application(
    "news-digest",
    "summariser",
    (
        Topic(
            "Summarise the report on the harbour.",
            (
                "The harbour handled {n} ships last week, more than in any week of the year.",
                "The council will decide in autumn whether a second terminal is built.",
            ),
            "The harbour had its busiest week with {n} ships. In autumn the council decides on a second terminal.",
        ),
        Topic(
            "Summarise the report on the schools.",
            (
                "The city opens {n} new classrooms after the summer holidays.",
                "Teachers welcome the plan but ask for more staff.",
            ),
            "After the summer holidays the city opens {n} new classrooms. Teachers welcome that, and ask for staff.",
        ),
    ),
    seconds=1.8,
    sigma=0.5,
    usd=0.002,
    task="summarization",
)
APPLICATIONS = (SUPPORT, DOCS, LEGAL, SHOP, NEWS)
