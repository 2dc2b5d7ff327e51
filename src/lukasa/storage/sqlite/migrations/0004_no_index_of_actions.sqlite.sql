-- Nobody looks for events by their action alone. Only counting them by it used this index, and takes half as long again
-- without; but that is asked for now and then, and every write paid for it.

PRAGMA user_version = 4;

DROP INDEX events_action;
