"""A store in PostgreSQL: `database` has the connections and the schema, `postgres_store` the class, `postgres_rows` the
rows of a transaction, `search` those of a search, and `sql` every statement that no declared table makes."""
