"""Programs that draw the pictures and write the tables of docs; run from the root of the repository."""
