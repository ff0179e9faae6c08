/** Tables that operators change. `rowid` is the order in which rows were made. */

const counted = (table: string): string => `
  CREATE TRIGGER ${table}_are_policy AFTER INSERT OR UPDATE OR DELETE ON ${table}
    FOR EACH ROW EXECUTE FUNCTION is_a_change_of_policy();
`

/** SQL; brings the schema from version 2 to 3. */
export const step = `
  CREATE TABLE organizations (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL CHECK (account IN ('open', 'prepaid')),
    created_at bigint NOT NULL,
    retains boolean NOT NULL DEFAULT false,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  );

  CREATE TABLE members (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    email text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL CHECK (role IN ('owner', 'admin', 'developer')),
    created_at bigint NOT NULL DEFAULT 0,
    removed_at bigint,
    all_projects boolean NOT NULL DEFAULT true,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    UNIQUE (org_id, email)
  );

  CREATE TABLE projects (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    name text COLLATE "C" NOT NULL,
    mode text COLLATE "C" NOT NULL DEFAULT 'credits' CHECK (mode IN ('credits', 'api-keys', 'hybrid')),
    cache_ttl_ms bigint CHECK (cache_ttl_ms > 0),
    archived_at bigint,
    created_at bigint NOT NULL,
    pass_parameters boolean NOT NULL DEFAULT false,
    cache_prompts boolean NOT NULL DEFAULT false,
    responses_ms bigint CHECK (responses_ms > 0),
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    UNIQUE (org_id, name)
  );

  -- hash: SHA-256 of the secret, hex. spent_units: whole dollars of what the key has spent; spent_rest: nano-USD beside.
  CREATE TABLE keys (
    id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES projects (id),
    name text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('key', 'publishable', 'session')),
    hash text COLLATE "C" NOT NULL UNIQUE,
    preview text COLLATE "C" NOT NULL,
    created_by text COLLATE "C",
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    parent_id text COLLATE "C" REFERENCES keys (id),
    models text COLLATE "C",
    succeeds text COLLATE "C" REFERENCES keys (id),
    spent_units bigint NOT NULL DEFAULT 0,
    spent_rest bigint NOT NULL DEFAULT 0,
    rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE
  ) WITH (fillfactor = 70);
  CREATE INDEX keys_of_project ON keys (project_id, created_at);

  CREATE TABLE member_projects (
    member_id text COLLATE "C" NOT NULL REFERENCES members (id),
    project_id text COLLATE "C" NOT NULL REFERENCES projects (id),
    PRIMARY KEY (member_id, project_id)
  );

  CREATE TABLE discounts (
    org_id text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    millionths bigint NOT NULL CHECK (millionths BETWEEN 1 AND 1000000),
    PRIMARY KEY (org_id, provider, model)
  );

  CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    org_id text COLLATE "C",
    subject text COLLATE "C" NOT NULL,
    was text COLLATE "C",
    became text COLLATE "C"
  );
  CREATE INDEX audit_of_organization ON audit (org_id, id);

  CREATE TABLE policies (
    org_id text COLLATE "C" PRIMARY KEY REFERENCES organizations (id),
    version bigint NOT NULL,
    compliance text COLLATE "C"
  );

  CREATE TABLE provider_keys (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    provider text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    master_key text COLLATE "C" NOT NULL,
    nonce bytea NOT NULL,
    ciphertext bytea NOT NULL,
    created_at bigint NOT NULL,
    models text COLLATE "C"
  );
  CREATE INDEX provider_keys_of_organization ON provider_keys (org_id, id);
  CREATE INDEX provider_keys_by_master_key ON provider_keys (master_key);

  CREATE TABLE rules (
    id text COLLATE "C" PRIMARY KEY,
    org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    key_id text COLLATE "C" REFERENCES keys (id),
    type text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    active boolean NOT NULL DEFAULT true,
    created_at bigint NOT NULL,
    member_id text COLLATE "C" REFERENCES members (id)
  );
  CREATE INDEX rules_of_organization ON rules (org_id, id);
  CREATE INDEX rules_of_key ON rules (key_id) WHERE key_id IS NOT NULL;

  CREATE TABLE manifests (
    org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    provider text COLLATE "C" NOT NULL,
    manifest text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (org_id, provider)
  );
  CREATE INDEX sessions_of_key ON keys (parent_id, expires_at) WHERE parent_id IS NOT NULL;
  CREATE INDEX keys_by_predecessor ON keys (succeeds) WHERE succeeds IS NOT NULL;
  CREATE INDEX keys_of_member ON keys (created_by) WHERE created_by IS NOT NULL;

  CREATE FUNCTION organizations_have_a_balance() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO balances (org_id) VALUES (NEW.id); RETURN NULL; END $$;
  CREATE TRIGGER organizations_have_a_balance AFTER INSERT ON organizations
    FOR EACH ROW EXECUTE FUNCTION organizations_have_a_balance();

  CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
  CREATE TRIGGER audit_refuses_changes BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();

  -- Every change of these tables makes another version of the policy.
  CREATE FUNCTION is_a_change_of_policy() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO policies (org_id, version) VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.org_id ELSE NEW.org_id END, 1)
    ON CONFLICT (org_id) DO UPDATE SET version = policies.version + 1;
    RETURN NULL;
  END $$;
${['provider_keys', 'rules', 'manifests'].map(counted).join('')}`
