"""All we know about ffmpeg: tools, probe, ladder, command lines, run, progress, boxes, manifests, verify."""
