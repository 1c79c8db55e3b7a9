"""Array types, pytrees, ops, interpreters and programs. Imports nothing from the other packages of atled."""
