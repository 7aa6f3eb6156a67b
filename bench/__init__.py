"""Speed, as ratios against a plain peer measured in the same run: `make bench`."""
