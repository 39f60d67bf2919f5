"""Static pods: pods from files, with mirror pods at the API server."""
