"""Steps of judge evaluators. They depend on texts only, so that evaluators which take the same step share its calls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragtide.evaluators.judge.calls import MOST_CALLS, Call, Conversation, JudgeCall, Section
from ragtide.evaluators.judge.replies import Picks, Texts, Verdicts
from ragtide.evaluators.judge.splitting import GROUP, GROUP_CHARACTERS, PIECE, SOURCE, groups_of, pieces_of
from ragtide.evaluators.spec import Shared

CHUNKS = 10  # that the judge gives verdicts on in one call
SENTENCES = 120  # of these chunks together


def together(*conversations: Conversation[Any]) -> Conversation[list[Any]]:
    """Hold conversations at the same time and return what each found, in order."""
    found: list[Any] = [None] * len(conversations)
    waiting: dict[int, Sequence[Call]] = {}

    def resume(at: int, replies: Sequence[Any] | None) -> None:
        try:
            waiting[at] = conversations[at].send(replies)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as stop:
            found[at] = stop.value

    calls_so_far = 0
    for at in range(len(conversations)):
        resume(at, None)
        calls_so_far += len(waiting.get(at, ()))
        if calls_so_far > MOST_CALLS:
            break  # with these calls the driver ends the conversation: the others need not begin
    while waiting:
        asked, waiting = waiting, {}
        replies = iter((yield [call for calls in asked.values() for call in calls]))
        for at, calls in asked.items():
            resume(at, [next(replies) for _ in calls])
    return found


def statements_of(text: str, shared: Shared) -> Conversation[list[str]]:
    """Return the statements that the judge finds in a text, each once."""
    return (yield from texts_in("statements", "text", text, shared))


def texts_in(prompt: str, name: str, text: str, shared: Shared) -> Conversation[list[str]]:
    """Return the texts that the judge lists of a long text, piece by piece, each once."""
    pieces = pieces_of(text, PIECE, shared)
    replies = (yield [JudgeCall(prompt, (Section(name, piece),), Texts) for piece in pieces]) if pieces else ()
    listed = (text.strip() for reply in replies for text in reply.texts)
    return list(dict.fromkeys(text for text in listed if text))


def sources_of(texts: Sequence[str], shared: Shared) -> list[tuple[Section, ...]]:
    """Return the sections, of limited size, that all of these texts are read in."""
    pieces = [piece for text in texts for piece in pieces_of(text, SOURCE, shared)]
    groups = groups_of(pieces, [len(piece) for piece in pieces], 10_000, SOURCE)
    return [(Section("source", tuple(group)),) for group in groups]


def texts_over(name: str, text: str, shared: Shared) -> list[tuple[Section, ...]]:
    """Return a text as sections of limited size."""
    return [(Section(name, piece),) for piece in pieces_of(text, SOURCE, shared)]


def verdicts_on(
    prompt: str, name: str, items: Sequence[str], over: Sequence[tuple[Section, ...]], shared: Shared
) -> Conversation[list[bool]]:
    """Return for each item whether the judge says yes, with at least one of `over`.

    An item that has its yes is not asked about again. A long item is asked about in pieces: one yes is enough.
    """
    found = [False] * len(items)
    parts = [(at, piece) for at, item in enumerate(items) for piece in pieces_of(item, GROUP_CHARACTERS, shared)]
    for sections in over:
        left = [part for part in parts if not found[part[0]]]
        if not left:
            break
        groups = list(groups_of(left, [len(piece) for _, piece in left], GROUP, GROUP_CHARACTERS))
        replies = yield [
            JudgeCall(prompt, (*sections, Section(name, tuple(piece for _, piece in group))), Verdicts, (len(group),))
            for group in groups
        ]
        for group, reply in zip(groups, replies, strict=True):
            for (at, _), verdict in zip(group, reply.in_order, strict=True):
                found[at] |= verdict
    return found


def supported(
    claims: Sequence[str], sources: Sequence[tuple[Section, ...]], shared: Shared
) -> Conversation[list[bool]]:
    """Return for each claim whether one of the sources supports it."""
    return (yield from verdicts_on("support", "claims", claims, sources, shared))


@dataclass(frozen=True, slots=True)
class ChunkReading:
    """The judge's verdict on a chunk, and which of its sentences it picked."""

    verdict: bool
    picked: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ChunkGroups:
    """The sentences of chunks, grouped by call: each group has parts of chunks, with the number of the chunk."""

    chunks: int
    groups: tuple[tuple[tuple[int, tuple[str, ...]], ...], ...]


def chunk_groups(chunks: Sequence[str], shared: Shared) -> ChunkGroups:
    """Group the sentences of chunks. A long chunk is split into parts, a blank one is in no group."""
    parts = [(at, part) for at, text in enumerate(chunks) for part in _parts(text, shared)]
    sizes = [sum(map(len, part)) for _, part in parts]
    groups = (
        tuple(small)
        for group in groups_of(parts, sizes, CHUNKS, SOURCE)
        for small in groups_of(group, [len(part) for _, part in group], CHUNKS, SENTENCES)
    )
    return ChunkGroups(len(chunks), tuple(groups))


def read_chunks(prompt: str, asked: tuple[Section, ...], read: ChunkGroups) -> Conversation[list[ChunkReading]]:
    """Return the judge's reading of each chunk. For a long chunk one yes is enough. A blank one is no."""
    replies = (yield [_reading_call(prompt, asked, group) for group in read.groups]) if read.groups else ()
    verdicts = [False] * read.chunks
    picked: list[list[bool]] = [[] for _ in verdicts]
    for group, reply in zip(read.groups, replies, strict=True):
        first, chosen = 1, set(reply.sentences)
        for (at, part), verdict in zip(group, reply.in_order, strict=True):
            verdicts[at] |= verdict
            picked[at] += [number in chosen for number in range(first, first + len(part))]
            first += len(part)
    return [ChunkReading(verdict, tuple(those)) for verdict, those in zip(verdicts, picked, strict=True)]


def _parts(text: str, shared: Shared) -> Iterator[tuple[str, ...]]:
    """Yield the sentences of a chunk, in parts of limited size. A text without sentences counts as one."""
    sentences = [sentence.text for sentence in shared.sentences(text)] or [text]
    pieces = [piece for sentence in sentences for piece in pieces_of(sentence, SOURCE, shared)]
    yield from map(tuple, groups_of(pieces, [len(piece) for piece in pieces], SENTENCES, SOURCE))


def _reading_call(prompt: str, asked: tuple[Section, ...], group: Sequence[tuple[int, tuple[str, ...]]]) -> JudgeCall:
    sections, first = [], 1
    for number, (_, part) in enumerate(group, start=1):
        sections.append(Section(f"chunk {number}", part, first))
        first += len(part)
    return JudgeCall(prompt, (*asked, *sections), Picks, (len(group), first - 1))
