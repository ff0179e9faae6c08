/** Marks the file as ours, so that the database of another program is never migrated. */
export const APPLICATION_ID = 0x4d475731
