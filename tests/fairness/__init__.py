"""One tenant's storm beside other tenants' schedules, in virtual time, on the real use cases."""
