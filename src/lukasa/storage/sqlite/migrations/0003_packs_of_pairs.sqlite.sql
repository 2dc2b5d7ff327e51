-- Packs hold two bytes for each number from now on. They are derived: those of a place are made again by the next
-- transaction that adds a vector there, and until then its vectors are read one by one.

PRAGMA user_version = 3;

DELETE FROM packs;
