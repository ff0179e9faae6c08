/** Values in markup are text. */
import t from 'tap'
import { usd } from '../../src/ui/format.ts'
import { Html, html, link } from '../../src/ui/html.ts'
import { Sessions } from '../../src/ui/sessions.ts'

t.test('every value but markup is escaped, in text and in attributes', t => {
  const value = `<b a='1' b="2">&`
  t.equal(String(html`<p title="${value}">${value}</p>`).includes('<b'), false)
  t.equal(String(html`${[value, html`<i>${value}</i>`]}`).match(/</g)?.length, 2)
  t.equal(String(html`${0}${1n}${null}${undefined}${false}${''}`), '01')
  t.ok(html`` instanceof Html)
  t.end()
})

t.test('the sign of an amount stands before its currency', t => {
  const shown = { '0': '$0', '-0.00046543': '-$0.0004654', '0.5': '$0.5', '-1234.567': '-$1,234.57', '2': '$2.00' }
  for (const [amount, text] of Object.entries(shown)) t.equal(usd(amount), text)
  t.equal(usd(null), '–')
  t.end()
})

t.test('a link has the values that are present, encoded', t => {
  t.equal(link('/ui', { a: '&b=1', c: undefined, d: '', e: 0 }), '/ui?a=%26b%3D1&e=0')
  t.equal(link('/ui', {}), '/ui')
  t.end()
})

t.test('a session ends in time, and the oldest makes room', t => {
  let now = 0
  const sessions = new Sessions(() => now)
  const first = sessions.begin()
  t.ok(sessions.find(first.id)?.isToken(first.csrf))
  t.notOk(first.isToken(''))
  now = first.expiresAt - 1
  t.ok(sessions.find(first.id))
  now++
  t.equal(sessions.find(first.id), undefined)
  const [oldest] = Array.from({ length: 101 }, () => sessions.begin())
  t.equal(sessions.find(oldest!.id), undefined)
  t.equal(sessions.find(''), undefined)
  t.end()
})
