"""What people and make run around the project; none of it is deployed."""
