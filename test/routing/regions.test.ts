/** Providers with an address for each region: what files may say, and where requests go. */
import t from 'tap'
import { sign } from '../../src/upstream/sign.ts'
import { edited, loadIn, mapping, PROVIDER, refusal } from '../config/kit.ts'
import { byName } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const load = loadIn(t.testdir({}))
/** The base configuration with another address, and regions. */
const regional = (address: string, regions?: string) => {
  const moved = edited(PROVIDER, 'https://api.acme.example/v1/', address)[PROVIDER]!
  const at = '    supports: [streaming, tools]\n'
  return { [PROVIDER]: moved.replace(at, regions === undefined ? at : `${at}    regions: ${regions}\n`) }
}

t.test('an address that holds {region} needs regions that can stand in it', async t => {
  const address = 'https://{region}.acme.example/v1/{region}'
  const offer = mapping(await load(regional(address, '[eu-west-1, us-east-1, eu-west-1]')))
  t.strictSame([offer.provider.baseUrl, offer.regions], [address, ['eu-west-1', 'us-east-1']])
  const plain = mapping(await load(regional('https://api.acme.example/v1', '["Europe, west"]')))
  t.strictSame(plain.regions, ['Europe, west'], 'without it they are only told')
  t.match(
    await refusal(load(regional(address))),
    /contains "\{region\}", so each of its models needs the key "regions"/,
  )
  for (const odd of ['"a/b"', '"evil.example#"', '"EU"', '"a b"', '"a@b"']) {
    t.match(await refusal(load(regional(address, `[ok, ${odd}]`))), /expected a region such as "us-east-1"/, odd)
  }
})

t.test('a request goes to the address of its region, and is signed for it', async t => {
  const keys = 'AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
  const auth = { scheme: 'aws-sigv4', region: 'us-east-1', service: 'bedrock' } as const
  const there = {
    ...target({ secret: keys, provider: { auth } }),
    region: 'eu-west-1',
    baseUrl: 'https://eu.acme.example',
  }
  const request = { path: '/chat', body: {} }
  const away = await sign(there, request, 'id', { type: 'application/json', body: '{}' })
  t.equal(away.baseUrl, 'https://eu.acme.example')
  t.match(byName(away.headers).authorization, /\/eu-west-1\/bedrock\/aws4_request/)
  const home = await sign(target({ secret: keys, provider: { auth } }), request, 'id', {
    type: 'application/json',
    body: '{}',
  })
  t.equal(home.baseUrl, target().provider.baseUrl)
  t.match(byName(home.headers).authorization, /\/us-east-1\/bedrock\/aws4_request/)
})
