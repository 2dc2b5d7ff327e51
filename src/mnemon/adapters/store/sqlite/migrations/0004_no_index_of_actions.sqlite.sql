-- Nobody looks for events by their action alone: who counts them by it goes through them in the order they are in, which
-- is sooner done than jumping from row to row. So no write has to keep an index of it.

PRAGMA user_version = 4;

DROP INDEX events_action;
