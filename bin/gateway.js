#!/usr/bin/env node
// While it loads there is nothing to reload yet, and nothing that would be worth the process.
process.on('SIGHUP', () => undefined)
await import('../dist/src/main.js')
