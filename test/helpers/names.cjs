/**
 * Loaded before a gateway (`--require`): replaces name resolution. `NAMES` holds addresses by name, as JSON: a list of
 * answers per name, the last of which repeats. Instead of a list, `hangs` never answers and `fails` is a failure of the
 * name server. Other names do not exist.
 */
const dns = require('node:dns')
const { syncBuiltinESMExports } = require('node:module')

const answers = JSON.parse(process.env.NAMES ?? '{}')
function addressesOf(name) {
  const given = answers[name]
  if (!given) throw Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND' })
  return given.length > 1 ? given.shift() : given[0]
}
const family = address => (address.includes(':') ? 6 : 4)

for (const [method, wanted] of [
  ['resolve4', 4],
  ['resolve6', 6],
]) {
  dns.promises.Resolver.prototype[method] = async name => {
    const found = (wanted === 4 ? addressesOf(name) : (answers[name]?.[0] ?? [])).filter(at => family(at) === wanted)
    if (found.length === 0) throw Object.assign(new Error('ENODATA'), { code: 'ENODATA' })
    return found
  }
}

const { lookup } = dns
dns.lookup = (name, options, done) => {
  if (!answers[name]) return lookup(name, options, done)
  if (answers[name] === 'hangs') return
  if (answers[name] === 'fails') {
    process.nextTick(done, Object.assign(new Error(`getaddrinfo EAI_AGAIN ${name}`), { code: 'EAI_AGAIN' }))
    return
  }
  const [address] = addressesOf(name)
  if (options.all) process.nextTick(done, null, [{ address, family: family(address) }])
  else process.nextTick(done, null, address, family(address))
}
syncBuiltinESMExports()
