"""Words that every part shares: ids, states, messages, errors, names. Pure: no I/O, nothing of ours imported."""
