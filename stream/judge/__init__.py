"""The client of judges: sends calls to endpoints that speak OpenAI's chat completions API.

It takes no library of a provider: `openai` needs 2 ms of processor time a call, 2.6 times as much, and would bring a
second HTTP client beside aiohttp, and retries that know no time limit of a trace.
"""

from ragtide.stream.judge.client import JudgeClient
from ragtide.stream.judge.stored_ledger import StoredLedger
from ragtide.stream.judge.usage import Usage, UsageKey, usage_by_endpoint, usage_lines

__all__ = ["JudgeClient", "StoredLedger", "Usage", "UsageKey", "usage_by_endpoint", "usage_lines"]
