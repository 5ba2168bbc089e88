"""One suite per port, run on the fake and on the AWS adapter against moto."""
