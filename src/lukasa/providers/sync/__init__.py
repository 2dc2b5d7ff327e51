"""How memory travels between machines: ciphers and signatures, the format of bundles, folders and git remotes."""
