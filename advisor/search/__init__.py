"""The search: every layout of a case, judged by law and memory, ordered by cost; the lowest rung that fits decides."""
