"""What a process needs before it can work: settings, logs, a way to its neighbours, and those neighbours embedded."""
