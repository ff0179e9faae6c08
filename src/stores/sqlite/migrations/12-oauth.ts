/** Clients that act for the holder of a key, and what they were granted. */
export const step = `
  -- redirect_uris, grant_types: JSON arrays. scopes, everywhere: names with blanks between.
  CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    grant_types TEXT NOT NULL,
    method TEXT NOT NULL,
    secret_hash TEXT,
    scopes TEXT NOT NULL,
    key_id TEXT REFERENCES keys (id),
    created_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT;
  CREATE INDEX oauth_clients_unused ON oauth_clients (created_at) WHERE used_at IS NULL AND key_id IS NULL;
  CREATE INDEX oauth_clients_of_key ON oauth_clients (key_id) WHERE key_id IS NOT NULL;

  -- client_id may be the address of a document. made_key: the key was made for this grant alone, and ends with it.
  CREATE TABLE oauth_grants (
    id TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    client_name TEXT NOT NULL,
    key_id TEXT NOT NULL REFERENCES keys (id),
    scopes TEXT NOT NULL,
    resource TEXT NOT NULL,
    made_key INTEGER NOT NULL CHECK (made_key IN (0, 1)),
    created_at INTEGER NOT NULL,
    used_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
  CREATE INDEX oauth_grants_of_key ON oauth_grants (key_id, client_id) WHERE revoked_at IS NULL;
  CREATE INDEX oauth_grants_of_client ON oauth_grants (client_id);
  CREATE INDEX oauth_grants_over ON oauth_grants (revoked_at) WHERE revoked_at IS NOT NULL;

  -- hash, here and below: SHA-256, hex. Codes and tokens themselves are nowhere.
  CREATE TABLE oauth_codes (
    hash TEXT PRIMARY KEY,
    grant_id TEXT NOT NULL REFERENCES oauth_grants (id),
    redirect_uri TEXT NOT NULL,
    challenge TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT;
  CREATE INDEX oauth_codes_of_grant ON oauth_codes (grant_id);
  CREATE INDEX oauth_codes_over ON oauth_codes (expires_at);

  -- used_at: when it was rotated or revoked.
  CREATE TABLE oauth_tokens (
    hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
    grant_id TEXT NOT NULL REFERENCES oauth_grants (id),
    scopes TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT;
  CREATE INDEX oauth_tokens_of_grant ON oauth_tokens (grant_id, kind);
  CREATE INDEX oauth_tokens_over ON oauth_tokens (coalesce(used_at, expires_at));

  CREATE TABLE login_codes (
    hash TEXT PRIMARY KEY,
    member_id TEXT NOT NULL REFERENCES members (id),
    project_id TEXT NOT NULL REFERENCES projects (id),
    expires_at INTEGER NOT NULL,
    used_at INTEGER
  ) STRICT;
  CREATE INDEX login_codes_of_member ON login_codes (member_id);
`
