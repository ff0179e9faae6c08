/** Responses that projects keep, sealed under a master key, and the bytes of each organization's. */
export const step = `
  ALTER TABLE projects ADD COLUMN responses_ms INTEGER CHECK (responses_ms > 0);

  -- session_id: of the end user whose own it is. bytes: of the texts, and of the row. turn, answer: sealed.
  CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    session_id TEXT,
    previous_id TEXT,
    created_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL CHECK (bytes > 0),
    master_key TEXT NOT NULL,
    answer_nonce BLOB NOT NULL,
    answer BLOB NOT NULL,
    turn_nonce BLOB NOT NULL,
    turn BLOB NOT NULL
  ) STRICT;
  CREATE INDEX responses_of_organization ON responses (org_id, created_at, id);
  CREATE INDEX responses_of_project ON responses (project_id, created_at);

  CREATE TABLE response_bytes (
    org_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER responses_are_counted AFTER INSERT ON responses BEGIN
    INSERT INTO response_bytes (org_id, bytes) VALUES (NEW.org_id, NEW.bytes)
    ON CONFLICT (org_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER dropped_responses_are_counted AFTER DELETE ON responses BEGIN
    UPDATE response_bytes SET bytes = bytes - OLD.bytes WHERE org_id = OLD.org_id;
  END;
`
