/** The end user whose job it is. Earlier jobs are their project's: no end user reads them. */
export const step = 'ALTER TABLE jobs ADD COLUMN session TEXT'
