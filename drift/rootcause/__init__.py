"""Why a metric moved: where, since which version, at which stage, and whether it is the questions or the answers."""
