/** Addresses, ranges, who is public, and who a request comes from. */
import { BlockList, isIP, isIPv6 } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { clientAddress, inRange, isPublicHost, parseAddress, parseRange } from '../../src/core/address.ts'

fc.configureGlobal({ seed: 20261121 })

t.test('addresses are read in the forms that sockets and URLs write', async t => {
  const rows: [text: string, bits: 32 | 128, value: bigint][] = [
    ['0.0.0.0', 32, 0n],
    ['192.0.2.7', 32, 0xc0000207n],
    ['255.255.255.255', 32, 0xffffffffn],
    ['::ffff:192.0.2.7', 32, 0xc0000207n],
    ['::ffff:c000:207', 32, 0xc0000207n],
    ['::', 128, 0n],
    ['::1', 128, 1n],
    ['2001:DB8::1', 128, 0x20010db8000000000000000000000001n],
    ['1:2:3:4:5:6:7:8', 128, 0x00010002000300040005000600070008n],
    ['1::8', 128, 0x00010000000000000000000000000008n],
    ['64:ff9b::192.0.2.7', 128, 0x0064ff9b0000000000000000c0000207n],
    ['::192.0.2.7', 128, 0xc0000207n],
    ['0:0:0:0:0:ffff:192.0.2.7', 32, 0xc0000207n],
    ['0000:0000:0000:0000:0000:ffff:255.255.255.255', 32, 0xffffffffn],
    ['1:2:3:4:5:6:7::', 128, 0x00010002000300040005000600070000n],
  ]
  for (const [text, bits, value] of rows) t.strictSame(parseAddress(text), { bits, value }, text)
  const none = `1.2.3 1.2.3.4.5 256.0.0.1 01.2.3.4 0x7f.1 127.1 1.2.3.4/8 a.b.c.d : ::: 1::2::3 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9
    12345:: g:: ::1%eth0 1.2.3.4:: :1:2:3:4:5:6:7 localhost -1.2.3.4 0177.0.0.1 2130706433 0x7f000001 017700000001
    ::ffff:0x7f.0.0.1 ::ffff:0177.0.0.1 ::ffff:127.1 ::ffff:1.2.3.256 ::ffff:1.2.3.4.5 ::0x7f.0.0.1 64:ff9b::010.0.0.1 1::1.2.3.4%1
    1:2:3:4:5:6:7:1.2.3.4 [::1] ::1/128 ::ffff:1.2.3.4/96 0x1::`
  for (const text of ['', ' ', '1.2.3.4 ', ...none.split(/\s+/)]) t.equal(parseAddress(text), undefined, text)
})

t.test('a range holds what shares its prefix', async t => {
  const rows: [range: string, inside: string[], outside: string[]][] = [
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255', '::ffff:10.1.1.1'], ['11.0.0.0', '9.255.255.255', '::a00:0']],
    ['10.9.8.7/8', ['10.0.0.1'], ['11.0.0.1']],
    ['192.0.2.7', ['192.0.2.7'], ['192.0.2.6']],
    ['0.0.0.0/0', ['1.2.3.4'], ['::1']],
    ['::/0', ['::1', '2001:db8::'], ['1.2.3.4']],
    ['2001:db8::/32', ['2001:db8:ffff::1'], ['2001:db9::']],
    ['::ffff:10.0.0.0/104', ['10.1.2.3'], ['11.1.2.3']],
  ]
  for (const [text, inside, outside] of rows) {
    const range = parseRange(text)!
    for (const address of inside) t.ok(inRange(range, parseAddress(address)!), `${address} in ${text}`)
    for (const address of outside) t.notOk(inRange(range, parseAddress(address)!), `${address} not in ${text}`)
  }
  for (const text of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/a', '/8', '::/129', '10.0.0.0/8/8', '::ffff:10.0.0.0/95'])
    t.equal(parseRange(text), undefined, text)
})

t.test('a range is the interval of its prefix', async () => {
  const v4 = fc.integer({ min: 0, max: 0xffff_ffff })
  const dotted = (value: number) => [24, 16, 8, 0].map(shift => (value >>> shift) & 255).join('.')
  fc.assert(
    fc.property(v4, v4, fc.integer({ min: 0, max: 32 }), (base, other, prefix) => {
      const size = 2 ** (32 - prefix)
      const expected = Math.floor(base / size) === Math.floor(other / size)
      return inRange(parseRange(`${dotted(base)}/${prefix}`)!, parseAddress(dotted(other))!) === expected
    }),
  )
})

t.test('what is an address, and which one, is what sockets say', async () => {
  const octet = fc.oneof(fc.nat(299).map(String), fc.constantFrom('0', '00', '01', '010', '0x7f', '127'))
  const dotted = fc.array(octet, { minLength: 1, maxLength: 5 }).map(parts => parts.join('.'))
  const group = fc.oneof(
    fc.nat(0xffff).map(value => value.toString(16)),
    fc.constantFrom('0', 'ffff', 'FFFF', '00ab', '64', 'ff9b', '12345', 'g', ''),
  )
  const groups = fc.array(group, { maxLength: 9 }).map(parts => parts.join(':'))
  const v6 = fc
    .tuple(
      groups,
      fc.constantFrom('', '::', ':', ':ffff:', '::ffff:'),
      fc.oneof(groups, dotted),
      fc.constantFrom('', '%1'),
    )
    .map(parts => parts.join(''))
  const noise = fc.string({ unit: fc.constantFrom(...'019afx:.%/ ['), maxLength: 20 })
  fc.assert(
    fc.property(fc.oneof(dotted, v6, fc.ipV4(), fc.ipV6(), noise), text => {
      const address = parseAddress(text)
      if (text.includes('%')) return address === undefined
      if (isIP(text) === 0 || !address) return (isIP(text) === 0) === (address === undefined)
      // A list with this address alone holds the value that was read, and not its neighbour.
      const list = new BlockList()
      list.addAddress(text, isIPv6(text) ? 'ipv6' : 'ipv4')
      const spelt = (value: bigint) => (address.bits === 32 ? inDots(value) : inGroups(value))
      const family = address.bits === 32 ? 'ipv4' : 'ipv6'
      return list.check(spelt(address.value), family) && !list.check(spelt(address.value ^ 1n), family)
    }),
    { numRuns: 2000 },
  )
})

const inDots = (value: bigint) => [24n, 16n, 8n, 0n].map(shift => (value >> shift) & 0xffn).join('.')
const inGroups = (value: bigint) => value.toString(16).padStart(32, '0').match(/.{4}/g)!.join(':')

t.test('hosts of this machine and its network are not public in any spelling', async t => {
  const hosts = `127.0.0.1 127.1 2130706433 0x7f.1 0x7f000001 0177.0.0.1 017700000001 0.0.0.0 0 １２７.０.０.１ ①②⑦.⓪.⓪.① 127。0。0。1
    127.0.0.1. localhost localhost. LOCALHOST api.localhost %31%32%37.0.0.1 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1]
    [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [fe80::1] [fd00:ec2::254] [fc00::1] [ff02::1] [2001:db8::1] [2001::1]
    168.63.129.16 [::ffff:168.63.129.16] [64:ff9b::a83f:8110] [2002:a83f:8110::] [2001:0:4136:e378:8000:63bf:57c0:7eef] 100.64.0.1 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 224.0.0.1 255.255.255.255 198.18.0.1 192.0.2.1
    metadata.google.internal printer.local router.home.arpa intranet 127.0.0.1.nip.io 7f000001.nip.io app.localtest.me
    llm.prod.svc vllm.service.consul gpu1.lan gpu1.LAN. gpu1.corp wiki.intranet vllm.localdomain`
  for (const host of hosts.split(/\s+/)) {
    t.notOk(isPublicHost(new URL(`https://${host}/`).hostname), host)
  }
  for (const host of [
    'api.acme.example',
    '93.184.216.34',
    '[2606:4700::1111]',
    'xn--bcher-kva.example',
    '8.8.8.8',
    '168.63.129.17',
    'lan.example',
    'corp.example',
    'a.plan',
    'svc-a.example',
  ]) {
    t.ok(isPublicHost(new URL(`https://${host}/`).hostname), host)
  }
})

t.test('a caller is who the nearest proxy that is not trusted says', async t => {
  const trusted = ['10.0.0.0/8', '::1'].map(text => parseRange(text)!)
  const rows: [peer: string, forwarded: string | undefined, from: string | undefined][] = [
    ['192.0.2.1', undefined, '192.0.2.1'],
    ['192.0.2.1', '198.51.100.9', '192.0.2.1'],
    ['10.0.0.1', '198.51.100.9', '198.51.100.9'],
    ['::ffff:10.0.0.1', '198.51.100.9', '198.51.100.9'],
    ['10.0.0.1', '6.6.6.6, 198.51.100.9', '198.51.100.9'],
    ['10.0.0.1', '6.6.6.6, 198.51.100.9,10.0.0.2', '198.51.100.9'],
    ['::1', '10.0.0.3', '10.0.0.3'],
    ['10.0.0.1', '198.51.100.9:44321', '198.51.100.9'],
    ['10.0.0.1', '198.51.100.9:44321, 10.0.0.2:80', '198.51.100.9'],
    ['10.0.0.1', '[2001:db8::1]:443', '2001:db8::1'],
    ['10.0.0.1', '[2001:db8::1]', '2001:db8::1'],
    ['10.0.0.1', '2001:db8::1', '2001:db8::1'],
    ['10.0.0.1', '2001:db8::443', '2001:db8::443'],
    ['10.0.0.1', '::ffff:198.51.100.9', '198.51.100.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', 'nobody', undefined],
    ['10.0.0.1', '6.6.6.6, unknown', undefined],
    ['10.0.0.1', 'unknown:80', undefined],
    ['10.0.0.1', '198.51.100.9:', undefined],
    ['10.0.0.1', '198.51.100.9:http', undefined],
    ['10.0.0.1', '2001:db8::1]:443', undefined],
    ['10.0.0.1', '[2001:db8::1]443', undefined],
    ['', undefined, undefined],
    ['fe80::1%eth0', undefined, 'fe80::1'],
  ]
  for (const [peer, forwarded, from] of rows) {
    const expected = from === undefined ? undefined : parseAddress(from)
    t.strictSame(clientAddress(peer, forwarded, trusted), expected, `${peer} ${forwarded}`)
  }
  t.strictSame(clientAddress('192.0.2.1', '6.6.6.6', []), parseAddress('192.0.2.1'), 'nobody is trusted unless named')
})
