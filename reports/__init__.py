"""Charts and documents from the tables. Depends on hindflight.toolkit.schema only."""
