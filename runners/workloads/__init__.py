"""One readable file per workload: a specification in, samples out."""
