/** Loaded first by every process that the bench starts: ends it when the bench is gone, however that came to its end. */
process.once('disconnect', () => process.exit(1))
