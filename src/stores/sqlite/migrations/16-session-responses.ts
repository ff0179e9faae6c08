/** The bytes of each end user's stored responses, and the way to the oldest of them. */
export const step = `
  CREATE INDEX responses_of_session ON responses (session_id, created_at, id) WHERE session_id IS NOT NULL;
  CREATE TABLE response_session_bytes (
    session_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO response_session_bytes (session_id, bytes)
    SELECT session_id, sum(bytes) FROM responses WHERE session_id IS NOT NULL GROUP BY session_id;
  CREATE TRIGGER session_responses_are_counted AFTER INSERT ON responses WHEN NEW.session_id IS NOT NULL BEGIN
    INSERT INTO response_session_bytes (session_id, bytes) VALUES (NEW.session_id, NEW.bytes)
    ON CONFLICT (session_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER dropped_session_responses_are_counted AFTER DELETE ON responses WHEN OLD.session_id IS NOT NULL BEGIN
    UPDATE response_session_bytes SET bytes = bytes - OLD.bytes WHERE session_id = OLD.session_id;
    DELETE FROM response_session_bytes WHERE session_id = OLD.session_id AND bytes <= 0;
  END;
`
