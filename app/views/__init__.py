"""One script per page, run by `st.navigation`; thin, read from top to bottom."""
