/** Credentials that providers repeat: whole, or cut at one end, as they are and in the usual encodings. */
import * as fc from 'fast-check'
import t from 'tap'
import { knowSecrets, maskAll, maskOf } from '../../src/secrets/known.ts'
import { Mask, PiecewiseMasks, type SentSecrets } from '../../src/secrets/mask.ts'
import { redactText, redactValue } from '../../src/secrets/redact.ts'
import { runs } from '../helpers/runs.ts'

const sentOf = (secrets: string[], values: string[] = []): SentSecrets => ({
  secrets,
  values,
  key: JSON.stringify([secrets, values]),
})

/** Behind other bytes, without the characters that these and what follows determine too. */
const base64 = (before: number) => (text: string) =>
  Buffer.from('u'.repeat(before) + text)
    .toString('base64')
    .slice(before && before + 1, -4)
const lower = (text: string) => text.replace(/%../g, code => code.toLowerCase())
/** As servers in Go and .NET write JSON. */
const escaped = (text: string) => text.replace(/[<>&'+]/g, char => `\\u00${char.charCodeAt(0).toString(16)}`)
const encodings: readonly ((text: string) => string)[] = [
  text => text,
  encodeURIComponent,
  text => lower(encodeURIComponent(text)),
  text => encodeURIComponent(text).replaceAll('%2F', '/'),
  text => JSON.stringify(text).slice(1, -1),
  text => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  text => escaped(JSON.stringify(text).slice(1, -1)),
  text => escaped(JSON.stringify(text).slice(1, -1)).replace(/u00../g, code => code.toUpperCase().replace('U', 'u')),
  ...[0, 1, 2].flatMap(before => [
    base64(before),
    (text: string) => base64(before)(text).replaceAll('+', '-').replaceAll('/', '_'),
  ]),
]

const letter = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=:&"<')
const credential = fc
  .tuple(fc.constantFrom('', 'sk-ant-api03-', 'gsk_'), fc.string({ unit: letter, minLength: 30, maxLength: 90 }))
  .map(parts => parts.join(''))
  // One that repeats itself is none.
  .filter(text => new Set(Array.from(text, (_, at) => text.slice(at, at + 3))).size === text.length)

/** Independent of the mask: whether the texts have 12 characters in a row in common. */
const shares = (text: string, encoded: string) => {
  for (let at = 0; at + 12 <= encoded.length; at++) if (text.includes(encoded.slice(at, at + 12))) return true
  return false
}

/** A text in pieces of these lengths, masked. */
function inPieces(mask: Mask, text: string, cuts: readonly number[]): string {
  const masks = new PiecewiseMasks<number>(mask, 8)
  let at = 0
  let shown = ''
  for (const length of [...cuts, text.length]) {
    shown += masks.next(0, text.slice(at, at + length))
    at += length
  }
  return shown
}

t.test('a credential is masked in every encoding, whole or cut at its end', async () => {
  fc.assert(
    fc.property(credential, fc.constantFrom(...encodings), fc.nat(60), (secret, encoding, cut) => {
      const encoded = encoding(secret)
      // The prefix of its kind is in no answer masked alone.
      const piece = encoded.slice(0, Math.max(encoded.length - cut, 'sk-ant-api03-'.length * 1.4 + 12))
      const shown = new Mask(secret).strict(`It says (${piece}), no more.`)
      return !shares(shown, encoded) && shown.startsWith('It says (') && shown.endsWith('), no more.')
    }),
    { numRuns: runs(500) },
  )
})

t.test('the end of a credential is masked, and so is a part of several', t => {
  const mask = new Mask('sk-prod-8f2e91aa77c04d')
  t.equal(mask.answer('x1aa77c04d, and 8f2e91aa77c04d'), 'x1aa77c04d, and ***', 'of at least 12 characters')
  const parts = new Mask('AKIAEXAMPLE:wJalrXUtnFEMIK7:IQoJb3JpZ2lu')
  t.equal(parts.strict('AKIAEXAMPLE, wJalrXUtnFEMIK7 and IQoJb3JpZ2lu'), '***, *** and ***')
  t.equal(parts.answer('AKIAEXAMPLE'), 'AKIAEXAMPLE', 'of fewer characters is a word in answers')
  const key = JSON.stringify({ client_id: 'client-0123456789', private_key: '-----BEGIN-----\n0123456789abcdef\nlast' })
  t.equal(new Mask(key).strict('client-0123456789 0123456789abcdef'), 'client-0123456789 ***', 'of JSON the key alone')
  t.end()
})

t.test('a credential in pieces is masked from its twelfth character on', async () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }))
  fc.assert(
    fc.property(credential, fc.constantFrom(...encodings), cuts, (secret, encoding, lengths) => {
      const encoded = encoding(secret)
      const text = `As you asked: ${encoded} and so on, ${encoded}.`
      const shown = inPieces(new Mask(secret), text, lengths)
      // A model may tell what the keys of its vendor begin with.
      const own = encoded.slice('sk-ant-api03-'.length * 1.4)
      return !shares(shown, own) && shown.startsWith('As you asked: ') && shown.includes(' and so on, ')
    }),
    { numRuns: runs(500) },
  )
})

t.test('texts in pieces do not mix, and the oldest of too many is forgotten', t => {
  const key = 'sk-prod-8f2e91aa77c04d'
  const masks = new PiecewiseMasks<string>(new Mask(key), 2)
  const written: Record<string, string> = { a: '', b: '' }
  for (let at = 0; at < key.length; at += 6) {
    for (const name of ['a', 'b']) written[name] += masks.next(name, key.slice(at, at + 6))
  }
  for (const text of Object.values(written)) t.ok(text.includes('***') && !text.includes(key.slice(0, 18)), text)
  for (let name = 0; name < 100; name++) t.equal(masks.next(String(name), 'Hi'), 'Hi')
  t.end()
})

t.test('text without a credential stays as it is', async () => {
  const prose = fc.array(fc.constantFrom('a', 'word', ' ', '\n', 'sk-ant-api03-', 'Bearer', '0123', 'é', '=='), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(credential, fc.array(prose), (secret, texts) => {
      // A part of several may be as short as the beginning that its kind has in common.
      fc.pre(!secret.includes(':'))
      const text = texts.map(words => words.join('')).join('')
      const lengths = texts.map(words => words.join('').length)
      return inPieces(new Mask(secret), text, lengths) === text
    }),
    { numRuns: runs(100) },
  )
})

t.test('an answer that plays with its credential is masked in time that grows with its length', t => {
  const secret = `sk-${'abcdefghij0123456789'.repeat(20)}`
  for (const piece of [secret.slice(3, 14), secret.slice(3, 40), 'abcde', secret]) {
    const shown = new Mask(secret).answer(`${piece}~`.repeat(40_000))
    t.ok(shown.length <= 40_000 * (piece.length + 1), `${piece.length} characters again and again`)
    if (piece.length > 11) t.notMatch(shown, secret.slice(0, 15))
  }
  t.end()
})

t.test('values that are no credentials stand in answers, and as wholes in no error and no log', t => {
  const sent = sentOf(
    ['fn-Q8x2Zp71Lm4Rt9Vb'],
    ['https://www.acme.com', 'Acme International Documentation Assistant', 'eu-central-1', '2024-12-01-preview'],
  )
  const mask = new Mask('own-1a2b3c4d5e6f7a8b', sent)
  const answer = 'https://www.wikipedia.org, International law of Documentation, eu-central-1, 2024-12-01-preview'
  t.equal(mask.answer(answer), answer)
  t.equal(inPieces(mask, answer, []), answer)
  t.equal(mask.answer('https://www.acme.com and fn-Q8x2Zp71Lm4'), 'https://www.acme.com and ***')
  const error = 'https://www.wikipedia.org is not https://www.acme.com/x in eu-central-1, International law'
  t.equal(mask.strict(error), 'https://www.wikipedia.org is not ***/x in ***, International law')
  t.equal(mask.strict('of https%3A%2F%2Fwww.acme.com'), 'of ***', 'in every encoding')
  t.end()
})

t.test('every secret of a request is masked, however many there are', t => {
  const [own, other, last] = ['own-1a2b3c4d5e6f7a8b', 'fn-Q8x2Zp71Lm4Rt9Vb', 'k-Zw81Vb52Nq73Md64']
  t.equal(maskOf(own, sentOf([other]))?.answer(other), '***')
  t.equal(maskOf(own, sentOf([last]))?.answer(`${other} ${last}`), `${other} ***`, 'each has its own')
  t.equal(maskOf('', sentOf([last]))?.answer(last), '***')
  t.equal(maskOf(''), undefined)
  t.equal(maskOf(own, sentOf([last])), maskOf(own, sentOf([last])), 'a mask is made once')
  t.end()
})

t.test('a name says that a text is secret; numbers and names with spaces are none', t => {
  const fields = {
    apiKey: 'a',
    'x-auth-key': ['b'],
    per_key: 16,
    access_token: 3_600_000,
    token: '',
    'bad api token': 'c',
  }
  const shown = { apiKey: '***', 'x-auth-key': '***', per_key: 16, access_token: 3_600_000, token: '' }
  t.strictSame(redactValue(fields), { ...shown, 'bad api token': 'c' })
  t.end()
})

t.test('a log shows no secret that is known: of files, or of a credential in use', t => {
  knowSecrets('configuration', ['file-secret-1', 'short'])
  maskOf('used-Kd83nQx72LmZ0')
  const line = { text: 'a file-secret-1 of used-Kd83nQx72LmZ0 is short', deep: [{ note: 'file-secret-1' }] }
  t.strictSame(redactValue(line), { text: 'a *** of *** is short', deep: [{ note: '***' }] })
  t.equal(redactText('a file-secret-1'), 'a file-secret-1', 'which only a log searches for')
  knowSecrets('configuration', [])
  t.equal(maskAll('file-secret-1'), 'file-secret-1', 'what left the files is none')
  for (let at = 0; at < 256; at++) maskOf(`another-${at}-credential`)
  t.equal(maskAll('used-Kd83nQx72LmZ0'), 'used-Kd83nQx72LmZ0', 'of too many the one used least recently goes')
  t.end()
})
