/** Creates the policy tables: provider keys, rules, compliance, own providers. */
export const step = `
  -- version grows with every change of what belongs to the organization's policy; no row stands for no policy.
  -- compliance: a JSON object, NULL for no demands.
  CREATE TABLE policies (
    org_id TEXT PRIMARY KEY REFERENCES organizations (id),
    version INTEGER NOT NULL,
    compliance TEXT
  ) STRICT, WITHOUT ROWID;

  -- ciphertext: AES-256-GCM with its tag, under the master key that master_key names.
  CREATE TABLE provider_keys (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    provider TEXT NOT NULL,
    label TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    master_key TEXT NOT NULL,
    nonce BLOB NOT NULL,
    ciphertext BLOB NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX provider_keys_of_organization ON provider_keys (org_id, id);
  CREATE INDEX provider_keys_by_master_key ON provider_keys (master_key);

  -- key_id NULL: for all keys of the organization. value: a JSON object.
  CREATE TABLE rules (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    key_id TEXT REFERENCES keys (id),
    type TEXT NOT NULL,
    value TEXT NOT NULL,
    active INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX rules_of_organization ON rules (org_id, id);
  CREATE INDEX rules_of_key ON rules (key_id) WHERE key_id IS NOT NULL;

  -- manifest: as in providers.d, JSON.
  CREATE TABLE manifests (
    org_id TEXT NOT NULL REFERENCES organizations (id),
    provider TEXT NOT NULL,
    manifest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, provider)
  ) STRICT, WITHOUT ROWID;
${['provider_keys', 'rules', 'manifests'].map(counted).join('')}`

/** Every change of the table makes another version of the policy. */
function counted(table: string): string {
  return (['INSERT', 'UPDATE', 'DELETE'] as const)
    .map(
      event => `
  CREATE TRIGGER ${table}_${event.toLowerCase()}_is_a_change AFTER ${event} ON ${table} BEGIN
    INSERT INTO policies (org_id, version) VALUES (${event === 'DELETE' ? 'OLD' : 'NEW'}.org_id, 1)
    ON CONFLICT (org_id) DO UPDATE SET version = version + 1;
  END;
`,
    )
    .join('')
}
