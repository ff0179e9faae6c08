/** Whose own provider a job is at, so that claims do not count it to that of another organization with the same id. */
export const step = 'ALTER TABLE jobs ADD COLUMN owner TEXT'
