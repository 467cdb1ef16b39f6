"""What counts as a step, by hand, and that it is found where it stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.text.steps import steps


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("Press it and wait.", []),
        ("1. Press it.\n2. Wait for the light.", ["Press it.", "Wait for the light."]),
        ("(1) Press it\r\n(2) Wait\r\n\r\nThat is all.", ["Press it", "Wait"]),
        ("2. Wait.", ["Wait."]),  # a list may be cut off
        ("a) one\nb) two\nC) three", ["one", "two", "three"]),
        ("A. One\nB. Two", ["One", "Two"]),
        ("A. Smith wrote it.", []),
        ("It is by A. B. Smith.", []),
        ("- x\n* y\n  \u2022 z\n+ 42\n---", ["x", "y", "z"]),
        ("It is - as I said - right.", []),
        ("To reset: 1) press it, 2) hold it; and 3) let go.", ["press it", "hold it", "let go."]),
        ("Do (a) this and (b) that.", ["this", "that."]),
        ("It is so. 1. First item.\n2. Second item.", ["First item.", "Second item."]),
        ("It was on 1. May. We left at 2. pm.", []),
        ("See 2) and 3) and 4).", []),
        ("**Step 1:** Open it.\n\n**Step 2:** Close it.\n\nEnjoy.", ["Open it.", "Close it."]),
        ("### 1. Open it\nSlowly.\n### 2. Close it", ["Open it\nSlowly.", "Close it"]),
        ("step 1 - open, step 2 - close", ["open", "close"]),
        ("> 1. Open\n> 2. Close", ["Open", "Close"]),
        ("1. One\n   and more\n   - part\n2. Two", ["One\n   and more", "part", "Two"]),
        ("1.\nOne\n2.\nTwo", ["One", "Two"]),
        ("1. 42\n2. ...\n3. x", ["x"]),
        ("First, open it. It is heavy. Then press it.", ["open it.", "press it."]),
        ("First open it, then press it and finally let go. Enjoy!", ["open it", "press it", "let go."]),
        ("Firstly, a; second, b; after that c; lastly, d.", ["a", "b", "c", "d."]),
        ("First of all, sit. Next, breathe.", ["sit.", "breathe."]),
        ("Then go. Finally rest.", []),  # begins with no first
        ("First come, first served.", []),
        ("The first is red, then blue.", []),
        ("1. First, sit, then rest.\n2. Go.", ["First, sit, then rest.", "Go."]),
    ],
)
def test_by_hand(text: str, found: list[str]) -> None:
    assert [step.text for step in steps(text)] == found


LIKELY = st.lists(
    st.sampled_from(
        ["1.", "2)", "(a)", "b)", "-", "First", ", then ", "Step 2:", "**", "\n", "\n\n", " ", "x", "\ud800"]
    )
)


@given(st.text(max_size=100) | LIKELY.map(" ".join) | LIKELY.map("".join))
def test_steps_are_places_in_the_text_in_order_each_with_a_letter(text: str) -> None:
    end = 0
    for step in steps(text):
        assert end <= step.start < step.end
        assert text[step.start : step.end] == step.text == step.text.strip()
        assert any(map(str.isalpha, step.text))
        end = step.end
