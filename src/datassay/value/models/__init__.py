"""What a record is worth to any model: coalitions fitted, by whom, and the values made of them."""
