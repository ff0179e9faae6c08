/** The figures of a nightly run, one row each, in aligned columns. */

const HEAD = ['check', 'what', 'measured', 'bound', '']

/** @param {(import('../helpers/figure.ts').Figure & { holds: boolean })[]} figures @returns {string} */
export function table(figures) {
  const rows = figures.map(({ id, what, value, unit, holds, ...bounds }) => [
    id,
    what,
    `${value} ${unit}`,
    boundOf(bounds),
    holds ? '' : 'BROKEN',
  ])
  const all = [HEAD, ...rows]
  const widths = HEAD.map((_, column) => Math.max(...all.map(row => row[column].length)))
  return all
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const boundOf = ({ atLeast, atMost }) =>
  [atLeast === undefined ? '' : `>= ${atLeast}`, atMost === undefined ? '' : `<= ${atMost}`].filter(Boolean).join(', ')
