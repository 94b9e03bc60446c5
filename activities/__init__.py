"""One durable step per file: short glue between media, storage and the mirror."""
