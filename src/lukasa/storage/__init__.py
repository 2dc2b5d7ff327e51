"""Storage: the port of a store, the one commit path over a backend's rows, the declared tables, and the backends."""
