"""Questions of users with the calls that answer them, and a scorer of what an assistant called."""
