"""Classification over windows: labels and parts of a record, and the metrics of the sums."""
