"""What moves: from an earlier plan or today's, within limits or at a price, and in which order."""
