"""How much processor time the client of judges takes while it waits for replies.

`python -m benchmarks.judge_client [--seconds 20] [--in-flight 64] [--answers-in-s 1] [--traces 60]`: a server in
another process answers every call after a second. The client keeps so many calls in flight, with inputs of ordinary
size (3 KB) and replies that are parsed and checked. Its processor time is that of this process, all threads, without
imports and connections. Then the judge's evaluators of retrieval and answers run over traces, each alone and all
together: how many calls they share, and what the engine adds.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from queue import SimpleQueue
from typing import NamedTuple

from aiohttp import web

from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.judge.calls import Answer, Asker, JudgeCall, Section, TraceCalls
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.judge.replies import Verdicts
from ragtide.evaluators.judge.settings import JudgeSettings
from ragtide.evaluators.outcome import Failed
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.stream.judge import JudgeClient

GOAL = 0.1  # of a core
SAVED = 0.4  # of the calls
CLAIMS = 10
SHARING = (
    *("answer_correctness", "answer_relevance_statements", "answer_relevancy", "context_precision", "context_recall"),
    *("context_relevance", "context_relevancy", "faithfulness", "noise_sensitivity", "ragas"),
)


class Load(NamedTuple):
    """What calls in flight cost."""

    calls: int
    wall_s: float
    cpu_s: float
    failed: int


async def serve(after_s: float) -> None:
    verdicts = [{"number": number, "verdict": True} for number in range(1, CLAIMS + 1)]
    message = {"role": "assistant", "content": json.dumps({"verdicts": verdicts})}
    usage = {"prompt_tokens": 900, "completion_tokens": 120}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(after_s)
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def call(number: int) -> JudgeCall:
    claims = tuple(
        f"Claim {at} of record {number}: the offer holds for {at} days in every shop." for at in range(CLAIMS)
    )
    source = tuple(f"Sentence {at} of what was retrieved for record {number}." for at in range(40))
    return JudgeCall("support", (Section("source", source), Section("claims", claims)), Verdicts, (CLAIMS,))


def measure(client: JudgeClient, in_flight: int, seconds: float) -> Load:
    done: SimpleQueue[Answer] = SimpleQueue()
    trace = TraceCalls("bench")
    number = failed = finished = 0

    def start_one() -> None:
        nonlocal number
        number += 1
        client.submit(call(number), Asker("faithfulness", trace), done.put)

    for _ in range(in_flight):
        start_one()
    for _ in range(in_flight):  # connections are open, and structured output is found out
        done.get(timeout=60)
        start_one()
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        failed += isinstance(done.get(timeout=60), Failed)
        finished += 1
        start_one()
    return Load(finished, time.perf_counter() - wall, time.process_time() - cpu, failed)


def shared_calls(count: int) -> tuple[int, int, float]:
    """Calls of the evaluators alone and together, and the engine's milliseconds a trace."""
    every = registry.load()
    plans = {id: PreparedEvaluator(every[id], every[id].params(), "", ()) for id in SHARING}
    traces = prose_traces(count)

    def run(plan: list[PreparedEvaluator]) -> int:
        judge = HashingJudge()
        run_all(plan, traces, Resources(HashingEncoder(), judge=judge).batch())
        return len(judge.calls)

    alone = sum(run([one]) for one in plans.values())
    cpu = time.process_time()
    together = run(list(plans.values()))
    return alone, together, 1000 * (time.process_time() - cpu) / count


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--answers-in-s", type=float, default=1)
    parser.add_argument("--traces", type=int, default=60)
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.answers_in_s))
        return 0
    command = [sys.executable, "-m", "benchmarks.judge_client", "--serve", "--answers-in-s", str(given.answers_in_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        endpoint = {"url": url, "model": "bench", "concurrency": given.in_flight, "trace_timeout_s": 3600}
        client = JudgeClient(JudgeSettings.model_validate({"endpoints": {"bench": endpoint}}))
        load = measure(client, given.in_flight, given.seconds)
        client.close()
        server.terminate()
    share = load.cpu_s / load.wall_s
    print(f"{given.in_flight} in flight, answers in {given.answers_in_s:g} s, {load.calls / load.wall_s:.1f} calls/s:")
    print(f"{100 * share:.1f} % of a core, {1000 * load.cpu_s / load.calls:.2f} ms a call, {load.failed} failed")
    alone, together, ms = shared_calls(given.traces)
    saved = 1 - together / alone
    print(
        f"{len(SHARING)} evaluators, {given.traces} traces: {alone} calls alone, {together} together, "
        f"{100 * saved:.0f} % saved"
    )
    print(f"engine and evaluators: {ms:.2f} ms a trace")
    return 0 if share <= GOAL and saved >= SAVED and not load.failed else 1


if __name__ == "__main__":
    sys.exit(main())
