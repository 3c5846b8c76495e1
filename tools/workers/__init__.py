"""Where calls are computed: beside the event loop, and stopped when their time is over."""
