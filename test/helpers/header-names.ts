/** Finds the headers that the source reads from clients and writes to them. */
import { sourceFiles, textOf } from './sources.ts'

/** Folders that talk with providers, and with other servers. */
const OUTWARD = /^(?:plugins|src\/(?:upstream|egress|demo|wire|secrets|references|cli))\//
/** Read by name. */
const READ = /\bheader\('([a-z_-]+)'\)|\bheaders(?:\.([a-z]+) |\['([a-z_-]+)'\])/g
/** Names of two words that begin as headers do. */
const NAMED =
  /'((?:x|ratelimit|access-control|content|sec|mcp|if|accept|anthropic|ai-language|webhook|cross-origin|hx|retry|www|cache|last|session|thread|idempotency|transfer|set|user|http|referrer|request)-[a-z-]+)'/g
/** Types of media, names of filters and values. */
const OTHER = new Set(['content-filter', 'push', 'session-sticky', 'x-gzip', 'x-wav', 'x-flac', 'x-aiff', 'x-aac'])

/** The names, each with the files that have it. */
export function headersInSource(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const file of sourceFiles.filter(name => !OUTWARD.test(name))) {
    const text = textOf(file)
    for (const [, ...names] of [...text.matchAll(READ), ...text.matchAll(NAMED)]) {
      const name = names.find(one => one !== undefined)!
      if (!OTHER.has(name)) found.set(name, [...(found.get(name) ?? []), file])
    }
  }
  return found
}
