"""Objects in images: boxes, polygons and masks, how far they overlap, and which prediction is of which object."""
