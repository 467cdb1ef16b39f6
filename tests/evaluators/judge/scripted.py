"""A judge whose replies a test writes, by prompt."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragtide.evaluators.judge.calls import Asker, Done, JudgeCall, SearchCall
from ragtide.evaluators.judge.replies import Grade, JudgeReply, Picks, Texts, Verdict, Verdicts
from ragtide.evaluators.outcome import Outcome, Scored
from tests.evaluators.builtin.scoring import outcomes, trace

Rule = Callable[[Any], Any]  # of a JudgeCall or a SearchCall


class ScriptedJudge:
    """Replies as the rules of the prompts say, and keeps the calls. A call without a rule is an error of the test.

    The rule of "search" gives the results of searches.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self.calls: list[JudgeCall] = []
        self.searches: list[str] = []

    def endpoint_of(self, evaluator: str) -> str:
        return "scripted"

    def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
        self.calls.append(call)
        said = self._rules[call.prompt](call)
        if isinstance(said, JudgeReply):
            assert said.fault(call.counts) is None
        done(said)

    def search(self, call: SearchCall, asker: Asker, done: Done) -> None:
        self.searches.append(call.query)
        done(self._rules["search"](call))

    def flush(self, waiting: int) -> None:
        pass

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass

    def calls_of(self, prompt: str) -> list[JudgeCall]:
        return [call for call in self.calls if call.prompt == prompt]


def texts_in(call: JudgeCall, name: str) -> tuple[str, ...]:
    """The texts of the sections whose names begin so."""
    return tuple(text for section in call.sections if section.name.startswith(name) for text in section.texts)


def lines(call: JudgeCall) -> Texts:
    """Each line of the first section that is not blank is a statement."""
    return Texts(tuple(line.strip() for line in call.sections[0].texts[0].splitlines() if line.strip()))


def yes_if(name: str, is_yes: Callable[[str, JudgeCall], bool]) -> Rule:
    """A verdict on each item of a section."""

    def rule(call: JudgeCall) -> Verdicts:
        items = texts_in(call, name)
        return Verdicts(tuple(Verdict(at, bool(is_yes(item, call))) for at, item in enumerate(items, start=1)))

    return rule


def stated(name: str, source: str = "source") -> Rule:
    """An item has a yes if the source holds its very words."""
    return yes_if(name, lambda item, call: item in "\n".join(texts_in(call, source)))


def picks(useful: Callable[[str], bool], needed: Callable[[str], bool]) -> Rule:
    """A verdict on each chunk by its text, and on each sentence."""

    def rule(call: JudgeCall) -> Picks:
        chunks = [section for section in call.sections if section.name.startswith("chunk ")]
        verdicts = tuple(Verdict(at, useful(" ".join(one.texts))) for at, one in enumerate(chunks, start=1))
        numbered = ((one.first + at, text) for one in chunks for at, text in enumerate(one.texts))
        return Picks(verdicts, tuple(number for number, text in numbered if needed(text)))

    return rule


def grade(value: int) -> Rule:
    return lambda call: Grade(value)


def judged(id: str, rules: Mapping[str, Rule], params: Mapping[str, Any] | None = None, **fields: Any) -> Outcome:
    """What the evaluator says of a trace with these fields, by this judge."""
    [given] = outcomes(id, [trace(**fields)], params, judge=ScriptedJudge(rules))
    return given


def metrics(
    id: str, rules: Mapping[str, Rule], params: Mapping[str, Any] | None = None, **fields: Any
) -> Mapping[str, float]:
    given = judged(id, rules, params, **fields)
    assert isinstance(given, Scored), given
    return given.metrics


def joined(parts: Sequence[str]) -> str:
    return "\n".join(parts)
