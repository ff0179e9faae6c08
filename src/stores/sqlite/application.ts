/** Identifies the file, so that another program's database is never migrated. */
export const APPLICATION_ID = 0x4d475731
