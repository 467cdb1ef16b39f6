"""Classification over windows: the labels of a record, what they add to a window, and the metrics of the sums."""
