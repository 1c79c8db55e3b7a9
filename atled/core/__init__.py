"""What a traced program is: types, trees, ops, interpreters and programs. Imports nothing else from atled."""
