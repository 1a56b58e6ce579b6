"""What prepares graphs for passes."""
