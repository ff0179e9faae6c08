/** Reads Prometheus' text format. Source: "Exposition formats" of the Prometheus documentation. */

/** One line of the text. */
interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** A string for values that JSON cannot represent: `NaN`, `+Inf`, `-Inf`. */
  readonly value: number | string
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? +(\S+)/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g

/** Samples in their order; comments and unreadable lines are skipped. */
export function parseExposition(text: string): Sample[] {
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : LINE.exec(line)
    if (!match) continue
    const labels: Record<string, string> = {}
    for (const [, name, value] of (match[2] ?? '').matchAll(LABEL)) labels[name!] = unquote(value!)
    const number = Number(match[3])
    samples.push({ name: match[1]!, labels, value: Number.isFinite(number) ? number : match[3]! })
  }
  return samples
}

const unquote = (text: string): string => text.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))
