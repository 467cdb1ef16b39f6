"""How fast objects in images are compared: `object_detection` against pycocotools, and how far the two differ.

`python -m benchmarks.objects [--images 300] [--rounds 5]`: images with 20 objects of three classes and 40 predictions,
two thirds of them about right, with any scores. Ours scores each image through the engine, as a worker does, and makes
metrics of the sums; pycocotools indexes, evaluates and accumulates once. CPU time of the best round counts.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.ngrams import cpu_s
from ragtide.evaluators.builtin.object_detection import object_detection
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.parts import Combined
from ragtide.evaluators.trace import Boxes
from tests.evaluators.builtin.scoring import outcomes
from tests.evaluators.vision.scenes import CLASSES, IOUS, Said, by_pycocotools, image, region

MOST_ERROR = 0.01


def scenes(count: int) -> list[Boxes]:
    draw = random.Random(7)
    made = []
    for _ in range(count):
        things = [_box(draw, draw.choice(CLASSES)) for _ in range(20)]
        seen = []
        for _ in range(40):
            near = draw.choice(things)
            shifted = [side + draw.randint(-6, 6) for side in near["box"]]
            right = draw.random() < 2 / 3
            found = region(near["label"], shifted) if right else _box(draw, draw.choice(things)["label"])
            seen.append(found | {"score": draw.random()})
        made.append(Boxes(tuple(things), tuple(seen)))
    return made


def _box(draw: random.Random, label: str) -> dict[str, Any]:
    x, y = draw.randint(0, 900), draw.randint(0, 900)
    return region(label, (x, y, x + draw.randint(20, 100), y + draw.randint(20, 100)))


def ours(images: Sequence[Boxes]) -> Combined:
    total: Counter[str] = Counter()
    for said in outcomes("object_detection", [image(scene) for scene in images]):
        assert isinstance(said, Scored)
        total.update(said.parts)
    assert object_detection.combine is not None
    return object_detection.combine(total)


def farthest(made: Combined, said: dict[str, Said]) -> float:
    """The largest difference of average precision, of any class and IoU threshold."""
    return max(
        abs(made.per["ap"][label, f"{iou:g}"].value - value)
        for label, one in said.items()
        for iou, value in zip(IOUS, one.ap, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    images = scenes(options.images)
    error = farthest(ours(images), by_pycocotools(images))
    rounds = [(cpu_s(lambda: ours(images), 1), cpu_s(lambda: by_pycocotools(images), 1)) for _ in range(options.rounds)]
    mine, theirs = (min(times) / options.images * 1e3 for times in zip(*rounds, strict=True))
    print(f"object_detection {mine:.3f} ms of CPU an image, pycocotools {theirs:.3f}: ratio {theirs / mine:.2f}")
    print(f"average precision differs by {error:.5f} at most, since scores are counted in hundredths")
    return int(error > MOST_ERROR)


if __name__ == "__main__":
    sys.exit(main())
