"""Holding what a method intended against what its texts say: by an oracle, or by people."""
