"""The playground: condensation as it happens, in a browser (``condensation play``)."""
