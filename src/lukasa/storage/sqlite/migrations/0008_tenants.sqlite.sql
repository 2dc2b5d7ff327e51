-- Conversations and transcripts belong to the scope keys under which they began, and grants bind scope keys.

PRAGMA user_version = 8;

ALTER TABLE conversations ADD COLUMN keys TEXT NOT NULL DEFAULT '{}';
ALTER TABLE transcripts ADD COLUMN keys TEXT NOT NULL DEFAULT '{}';
ALTER TABLE grants ADD COLUMN scope TEXT NOT NULL DEFAULT '{}';
