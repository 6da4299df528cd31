"""Callbacks for other people's training loops; each module imports its library, and nothing here imports them."""
