"""What judge evaluators share: calls and replies, prompts, steps and formulas. `ragtide.stream.judge` sends the calls.

An evaluator holds a conversation with the judge: a generator that yields calls, gets their replies, and returns what it
found. The engine holds the conversations of a micro-batch at the same time. A call that several evaluators make is sent
once, so that statements, claims and verdicts on chunks are shared.
"""
