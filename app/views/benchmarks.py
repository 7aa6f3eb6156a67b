"""Benchmarks: started from a form, carried out in the background, followed from any tab."""

import streamlit as st

from app import benchmark_form, benchmark_live, queue_panel

left, right = st.columns([2, 3], gap="large")
with left:
    if benchmark_form.form():
        # So that the queue beside the form shows what has just been put into it.
        st.rerun()

with right:
    queue_panel.panel(benchmark_live.live)
    benchmark_live.results()
