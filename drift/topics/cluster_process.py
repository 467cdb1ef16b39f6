"""Find clusters in a child process: clustering holds the interpreter for seconds, and a leader must answer.

Run as `python -m ragtide.drift.topics.cluster_process MIN_SIZE SEED`: reads an .npy of vectors, writes one of labels.
"""

import os
import sys

from ragtide.drift.topics.clusters import find_clusters, pack, unpack

if __name__ == "__main__":
    os.nice(5)  # lanes may run on the same machine
    sys.stdout.buffer.write(
        pack(find_clusters(unpack(sys.stdin.buffer.read()), min_size=int(sys.argv[1]), seed=int(sys.argv[2])))
    )
