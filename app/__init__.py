"""What people see: the only package that knows Streamlit and Plotly."""
