/** Which key a key has succeeded: what the one has spent counts against the limits of the other. */
export const step = `
  -- succeeds: the key that was rolled.
  ALTER TABLE keys ADD COLUMN succeeds TEXT REFERENCES keys (id);
  UPDATE keys SET succeeds = rolled.old FROM (
    SELECT subject AS old, json_extract(became, '$.id') AS new FROM audit WHERE action = 'keys.roll'
  ) AS rolled WHERE keys.id = rolled.new;
`
