-- How often what is computed from the rows was computed again: whoever keeps answers of before forgets them.

PRAGMA user_version = 2;

ALTER TABLE meta ADD COLUMN rebuilt INTEGER NOT NULL DEFAULT 0;
