"""The client of judges: sends calls to endpoints that speak OpenAI's chat completions API.

It takes no library of a provider: `openai` (30 MB, 0.6 s and 60 MB to import) would bring a second HTTP client beside
aiohttp, and retries that know no time limit of a trace.
"""

from ragtide.stream.judge.client import JudgeClient
from ragtide.stream.judge.usage import Usage, UsageKey

__all__ = ["JudgeClient", "Usage", "UsageKey"]
