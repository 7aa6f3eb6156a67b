"""Measures: workloads, devices, run folders and the command line. Knows nothing of streamlit or duckdb."""
