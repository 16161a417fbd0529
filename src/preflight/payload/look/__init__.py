"""A look at running processes from outside: nothing is stopped, traced or asked of them."""
