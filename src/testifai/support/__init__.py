"""The ground floor: what every room uses and what knows of none of them."""
