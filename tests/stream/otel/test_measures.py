"""Numbers of spans: what no count or cost can be is not recorded, with the reason."""

from typing import Any

import pytest

from tests.stream.otel.scene import ANSWER, QUESTION, fields_of, map_one, oi, span

CHAIN = oi("CHAIN", input__value=QUESTION, output__value=ANSWER)


@pytest.mark.parametrize("large", [1.7e308, 1e300, 2**62, "1e13"])
def test_a_number_that_no_count_or_cost_can_be_is_not_recorded(large: Any) -> None:
    huge = oi("LLM", llm__token_count__prompt=large, llm__cost__total=large, llm__token_count__completion=6)
    mapped = map_one(span(1, **CHAIN), span(2, 1, **huge), span(3, 1, **huge))
    assert fields_of(mapped)["tokens"] == {"output": 12}
    assert mapped.missing["tokens.input"] == mapped.missing["cost_usd"] == ("out_of_range", "more than 1e+12")
    assert "cost_usd" not in mapped.origins
    mapped = map_one(
        span(1, **CHAIN),
        span(2, 1, **huge),
        span(3, 1, **oi("LLM", llm__token_count__prompt=40, llm__token_count__completion=6)),
    )
    assert mapped.missing["tokens.input"] == (
        "incomplete",
        "1 of 2 LLM calls have none, or one that is not read: more than 1e+12",
    )
