/** Lines of a refused configuration file keep its secrets. */
import t from 'tap'
import { excerpt } from '../../src/ui/excerpt.ts'

const SECRET = 'x9-plain-value'
const shown = (file: string, line = 1) =>
  excerpt(file, line)
    .map(({ text }) => text)
    .join('\n')

t.test('the value of a secret name is masked, wherever it stands in YAML', t => {
  const files = [
    `secret: ${SECRET}`,
    `  "api-key" : "${SECRET}"`,
    `auth: { scheme: bearer, secret: ${SECRET} }`,
    `auth: { secret: '${SECRET}', scheme: bearer }`,
    `auth: { secret: ${SECRET}`,
    `auth:\n  secret:\n    ${SECRET}`,
    `auth:\n  secret: >-\n    ${SECRET}\n    ${SECRET}`,
    `headers:\n  x-team: ${SECRET}`,
    `headers: { x-team: ${SECRET} }`,
    `secrets:\n  - ${SECRET}\n  - secret: ${SECRET}\n    weight: 2`,
    `secrets: [${SECRET}]`,
    `# secret: ${SECRET}`,
    `- password: ${SECRET}`,
    `postgres: postgres://user:${SECRET}@db/x`,
    `x-api-key: "${SECRET}\n   ${SECRET}"`,
    `client_secret: "\${X:-${SECRET}}"`,
  ]
  for (const file of files) for (let line = 1; line <= 5; line++) t.notOk(shown(file, line).includes(SECRET), file)
  t.end()
})

t.test('names, other values and references to variables are shown', t => {
  const file = `auth:\n  secret: "\${ACME_KEY}"\n  scheme: bearer\nname: Acme\nheaders:\n  x-team: "\${TEAM:-}"\nwires: {}\n`
  t.equal(shown(file), file.trimEnd().split('\n').slice(0, 7).join('\n'))
  t.strictSame(
    excerpt('a\nb\nc', 2).map(({ number, isMarked }) => [number, isMarked]),
    [
      [1, false],
      [2, true],
      [3, false],
    ],
  )
  t.end()
})
