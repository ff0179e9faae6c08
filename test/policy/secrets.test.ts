/** What comparing and looking up secrets may tell of them: nothing. */
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { openDatabase } from '../../src/stores/sqlite/open.ts'
import { statementsOf } from '../stores/statements.ts'
import { readersOf, seed, sqliteSubject } from '../stores/subject.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Names of what must not be compared character by character. */
const SECRET = /(^|\.)(given|expected|secret|token|apiKey|bearer|password|hmac|mac)$/i
const EQUALITY = new Set([
  ts.SyntaxKind.EqualsEqualsToken,
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
])
/** Both sides of it came with one request. */
const ofOneRequest = new Set(['bearer !== apiKey', 'apiKey !== value'])
const isConstant = (node: ts.Expression) =>
  ts.isLiteralExpression(node) ||
  node.kind === ts.SyntaxKind.NullKeyword ||
  node.getText() === 'undefined' ||
  ts.isTypeOfExpression(node)

t.test('AT-03 secrets are compared by digests of one length, in one time, or not at all', async t => {
  const found: string[] = []
  const calls: string[] = []
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.ts'),
  )
  for (const file of files) {
    const source = ts.createSourceFile(
      file,
      readFileSync(join(root, 'src', file), 'utf8'),
      ts.ScriptTarget.ES2023,
      true,
    )
    const walk = (node: ts.Node): void => {
      if (ts.isBinaryExpression(node) && EQUALITY.has(node.operatorToken.kind)) {
        const sides = [node.left, node.right]
        const text = node.getText()
        if (!sides.some(isConstant) && sides.some(side => SECRET.test(side.getText())) && !ofOneRequest.has(text)) {
          found.push(`${file}: ${text}`)
        }
      }
      if (ts.isCallExpression(node) && node.expression.getText() === 'timingSafeEqual') {
        calls.push(node.arguments.map(argument => argument.getText()).join())
      }
      ts.forEachChild(node, walk)
    }
    walk(source)
  }
  t.strictSame(found, [])
  const marks = `expected,Buffer.from(mac!, 'base64url')`
  t.strictSame(
    calls.sort(),
    [
      'Buffer.from(sha256(secret)),Buffer.from(secretHash)',
      'digest(given),expected',
      marks,
      'expected,given',
      'macOf(key, signed),given',
    ],
    'both sides have one length, or the comparison would throw',
  )
})

t.test('AT-04 what a wrong key has in common with a right one is lost before the store looks for it', async t => {
  const { key } = await (async () => {
    const subject = sqliteSubject(t)
    const { projectId } = await subject.organization('open', 0n)
    return subject.accounts.createKey({ project: projectId, name: 'k' })
  })()
  const right = sha256(key)
  const shared = (text: string) => [...right].findIndex((digit, at) => digit !== text[at])
  for (const length of [0, 8, 24]) {
    const kept = key.slice(0, 'mgw_'.length + length)
    const wrong = () =>
      kept +
      randomBytes(40)
        .toString('base64url')
        .slice(0, key.length - kept.length)
    const digits = Array.from({ length: 2000 }, () => shared(sha256(wrong())))
    const mean = digits.reduce((sum, count) => sum + count, 0) / digits.length
    // One in sixteen digests begins with the right digit.
    t.ok(mean > 0.02 && mean < 0.12, `${length} characters that are right: ${mean} digits`)
  }
})

t.test('AT-04 what the store does for a wrong key is the same however much of it is right', async t => {
  const subject = sqliteSubject(t)
  const { projectId } = await subject.organization('open', 0n)
  const { key } = await subject.accounts.createKey({ project: projectId, name: 'k' })
  const db = openDatabase(subject.path)
  t.teardown(() => db.close())
  const { keys } = readersOf(db, () => 0)
  t.match(await keys.find(sha256(key)), { projectId })
  const ran = statementsOf(t, subject.path)
  for (const shared of [0, 8, 24, 42]) {
    const length = 'mgw_'.length + shared
    const other = randomBytes(40).toString('base64url')
    // Never the right one, however little is left to differ.
    const last = key.endsWith('A') ? 'B' : 'A'
    const hash = sha256(key.slice(0, length) + other.slice(length - key.length, -1) + last)
    ran.length = 0
    t.equal(await keys.find(hash), undefined)
    const [find, token, ...others] = ran
    t.match([find, token], [{ sql: /keys\.hash = / }, { sql: /FROM oauth_tokens/ }], `${shared}`)
    t.strictSame(find?.given, [hash])
    t.strictSame(others, [])
  }
})

t.test('AT-19 a flood of wrong keys takes a bounded room, and pushes no right one out', async t => {
  const subject = sqliteSubject(t)
  const { keyId } = seed(subject.db, 'open', 0n)
  const db = openDatabase(subject.path)
  let now = 0
  const { keys } = readersOf(db, () => now)
  t.match(await keys.find(keyId), { keyId })
  let taken = 0
  for (let n = 0; n < 25_000; n++) if (await keys.find(sha256(`wrong-${n}`))) taken++
  t.equal(taken, 0)
  db.close()
  now = 1000
  t.match(await keys.find(keyId), { keyId }, 'it is still in memory')
  t.equal(await keys.find(sha256('wrong-24999')), undefined, 'so are the last of the wrong ones')
  await t.rejects(async () => keys.find(sha256('wrong-0')), { status: 503, code: 'store_unavailable' })
})
