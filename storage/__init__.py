"""Keys to bytes. Storage is the truth about bytes; nothing here knows what a video is."""
