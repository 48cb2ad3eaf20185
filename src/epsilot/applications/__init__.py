"""What transport is used for: adapting data to another domain, and colours to another picture."""
