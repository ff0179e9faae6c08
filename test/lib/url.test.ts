/** Addresses that others write are read in time that their length bounds. */
import * as fc from 'fast-check'
import t from 'tap'
import { checkChat } from '../../src/codecs/chat-rules.ts'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import { urlOf } from '../../src/lib/url.ts'
import { thrown } from '../core/kit.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'

const distinct = (length: number, from = 0x4e00) => String.fromCharCode(...Array.from({ length }, (_, n) => from + n))

t.test('an address is what the platform reads, unless its host is overlong', async t => {
  const base = new URL('https://a.example/b/c?d')
  const rows: [text: string, base: URL | undefined, href: string | undefined][] = [
    ['https://a.example/b c', undefined, 'https://a.example/b%20c'],
    [' \thttps://münchen.example/', undefined, 'https://xn--mnchen-3ya.example/'],
    ['../x', base, 'https://a.example/x'],
    ['//b.example/x', base, 'https://b.example/x'],
    [`/${distinct(2000)}`, base, new URL(`/${distinct(2000)}`, base).href],
    ['no address', undefined, undefined],
    [`https://${'a'.repeat(900)}`, undefined, `https://${'a'.repeat(900)}/`],
    [`https://${'a'.repeat(1001)}/`, undefined, undefined],
    [`https://${distinct(101)}/`, undefined, undefined],
    [`h\tttps:\\\\/${distinct(101)}`, undefined, undefined],
    [`https:${distinct(101)}`, undefined, undefined],
    [`//${distinct(101)}/x`, base, undefined],
    [`https://${encodeURIComponent(distinct(20))}/`, undefined, undefined],
    [`https://a@${distinct(101)}/`, undefined, undefined],
  ]
  for (const [text, behind, href] of rows) t.equal(urlOf(text, behind)?.href, href, text.slice(0, 40))
  const short = fc.string({ unit: 'binary', maxLength: 60 })
  fc.assert(
    fc.property(
      fc.oneof(
        short,
        short.map(rest => `https://${rest}`),
      ),
      text => {
        const read = urlOf(text)?.href
        return read === (URL.canParse(text) ? new URL(text).href : undefined)
      },
    ),
    { numRuns: runs(200) },
  )
})

t.test('a host of very many characters takes no time', async t => {
  const long = `https://${distinct(19_000)}.example/`
  const [ms = Number.NaN] = leastOf([() => cpuMs(() => urlOf(long))], ms => ms < 100)
  t.ok(ms < 100, `${ms} ms`)
})

t.test('a request has a thousand addresses of media at most', async t => {
  const request = (count: number, url = 'https://8.8.8.8/a') =>
    ({
      messages: [
        { role: 'user', content: Array.from({ length: count }, () => ({ type: 'image_url', image_url: { url } })) },
      ],
    }) as unknown as ChatRequest
  t.equal(checkChat(request(1000)), undefined)
  t.equal(checkChat(request(2000, 'data:image/png;base64,iVBORw0KGgo=')), undefined)
  t.match(
    thrown(() => checkChat(request(1, ' https://8.8.8.8/a'))),
    { status: 400, code: 'url_not_allowed' },
    'no other spelling',
  )
  t.match(
    thrown(() => checkChat(request(1001))),
    { status: 400, code: 'invalid_parameters', param: 'messages[0].content[1000]' },
  )
})
