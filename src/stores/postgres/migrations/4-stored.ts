/** Sign-in of programs, stored responses, and secrets of realtime sessions. */

/** SQL; brings the schema from version 3 to 4. */
export const step = `
  CREATE TABLE oauth_clients (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    redirect_uris text COLLATE "C" NOT NULL,
    grant_types text COLLATE "C" NOT NULL,
    method text COLLATE "C" NOT NULL,
    secret_hash text COLLATE "C",
    scopes text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" REFERENCES keys (id),
    created_at bigint NOT NULL,
    used_at bigint,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX oauth_clients_unused ON oauth_clients (created_at) WHERE used_at IS NULL AND key_id IS NULL;
  CREATE INDEX oauth_clients_of_key ON oauth_clients (key_id) WHERE key_id IS NOT NULL;

  CREATE TABLE oauth_grants (
    id text COLLATE "C" PRIMARY KEY,
    client_id text COLLATE "C" NOT NULL,
    client_name text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL REFERENCES keys (id),
    scopes text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    made_key boolean NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint,
    revoked_at bigint,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX oauth_grants_of_key ON oauth_grants (key_id, client_id) WHERE revoked_at IS NULL;
  CREATE INDEX oauth_grants_of_client ON oauth_grants (client_id);
  CREATE INDEX oauth_grants_over ON oauth_grants (revoked_at) WHERE revoked_at IS NOT NULL;

  CREATE TABLE oauth_codes (
    hash text COLLATE "C" PRIMARY KEY,
    grant_id text COLLATE "C" NOT NULL REFERENCES oauth_grants (id),
    redirect_uri text COLLATE "C" NOT NULL,
    challenge text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX oauth_codes_of_grant ON oauth_codes (grant_id);
  CREATE INDEX oauth_codes_over ON oauth_codes (expires_at);

  CREATE TABLE oauth_tokens (
    hash text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('access', 'refresh')),
    grant_id text COLLATE "C" NOT NULL REFERENCES oauth_grants (id),
    scopes text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX oauth_tokens_of_grant ON oauth_tokens (grant_id, kind);
  CREATE INDEX oauth_tokens_over ON oauth_tokens (coalesce(used_at, expires_at));

  CREATE TABLE login_codes (
    hash text COLLATE "C" PRIMARY KEY,
    member_id text COLLATE "C" NOT NULL REFERENCES members (id),
    project_id text COLLATE "C" NOT NULL REFERENCES projects (id),
    expires_at bigint NOT NULL,
    used_at bigint,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX login_codes_of_member ON login_codes (member_id);

  CREATE TABLE responses (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C",
    previous_id text COLLATE "C",
    created_at bigint NOT NULL,
    bytes bigint NOT NULL CHECK (bytes > 0),
    master_key text COLLATE "C" NOT NULL,
    answer_nonce bytea NOT NULL,
    answer bytea NOT NULL,
    turn_nonce bytea NOT NULL,
    turn bytea NOT NULL,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX responses_of_organization ON responses (org_id, created_at, id);
  CREATE INDEX responses_of_project ON responses (project_id, created_at);

  CREATE TABLE response_bytes (
    org_id text COLLATE "C" PRIMARY KEY,
    bytes bigint NOT NULL
  );

  CREATE TABLE realtime_secrets (
    hash text COLLATE "C" PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL REFERENCES keys (id),
    session text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );
  CREATE INDEX realtime_secrets_of_key ON realtime_secrets (key_id, expires_at);
  CREATE INDEX realtime_secrets_over ON realtime_secrets (expires_at);
  CREATE INDEX responses_of_session ON responses (session_id, created_at, id) WHERE session_id IS NOT NULL;

  CREATE TABLE response_session_bytes (
    session_id text COLLATE "C" PRIMARY KEY,
    bytes bigint NOT NULL
  );
  CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);

  CREATE FUNCTION responses_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    one responses;
    more bigint;
  BEGIN
    IF TG_OP = 'DELETE' THEN one := OLD; ELSE one := NEW; END IF;
    more := CASE TG_OP WHEN 'DELETE' THEN -one.bytes ELSE one.bytes END;
    INSERT INTO response_bytes AS sum (org_id, bytes) VALUES (one.org_id, more)
    ON CONFLICT (org_id) DO UPDATE SET bytes = sum.bytes + excluded.bytes;
    IF one.session_id IS NOT NULL THEN
      INSERT INTO response_session_bytes AS sum (session_id, bytes) VALUES (one.session_id, more)
      ON CONFLICT (session_id) DO UPDATE SET bytes = sum.bytes + excluded.bytes;
      DELETE FROM response_session_bytes WHERE session_id = one.session_id AND bytes <= 0;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER responses_are_counted AFTER INSERT OR DELETE ON responses
    FOR EACH ROW EXECUTE FUNCTION responses_are_counted();
`
