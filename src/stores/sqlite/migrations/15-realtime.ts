/** Client secrets of realtime sessions. */
export const step = `
  -- hash: SHA-256, hex. session: JSON of its settings, sealed under a master key.
  CREATE TABLE realtime_secrets (
    hash TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    key_id TEXT NOT NULL REFERENCES keys (id),
    session TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX realtime_secrets_of_key ON realtime_secrets (key_id, expires_at);
  CREATE INDEX realtime_secrets_over ON realtime_secrets (expires_at);
`
