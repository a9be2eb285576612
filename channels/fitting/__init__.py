"""Loss models fitted to a loss sequence, and statistics of a channel trace."""
