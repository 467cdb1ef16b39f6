"""Objects in images: boxes, polygons and masks, their overlaps, and the matching of predictions."""
