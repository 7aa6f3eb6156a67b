"""Questions of the reader in SQL: on a copy, in a process of its own, with limits."""

import streamlit as st

from app import sql_form, sql_result, state
from app.components import error_message
from data.errors import StoreError

left, right = st.columns([2, 3], gap="large")
with left:
    asked = sql_form.form()

with right:
    try:
        sql_result.show(asked, state.query_copy)
    except StoreError as error:
        error_message(error)

sql_form.views()
