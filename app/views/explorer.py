"""Every run of this machine: a table with filters, or one run in full (`?run=...`)."""

import streamlit as st

from app import explorer_list, explorer_run, state
from app.components import error_message
from app.import_dialog import import_button
from data.errors import StoreError

try:
    store = state.store()
except StoreError as error:
    error_message(error)
    st.stop()

chosen = st.query_params.get(state.RUN_PARAMETER)
if chosen:
    explorer_run.show(store, chosen)
else:
    import_button()
    explorer_list.show(store)
