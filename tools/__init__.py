"""Programs for the people who work on Lukasa. The package `lukasa` does not need them."""
