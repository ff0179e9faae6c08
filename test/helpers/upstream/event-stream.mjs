/** Messages of `application/vnd.amazon.eventstream`, as bytes. */

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

function crc32(bytes) {
  let crc = 0xffffffff
  for (const byte of bytes) crc = table[(crc ^ byte) & 0xff] ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

function uint32(value) {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const stringType = 7

function header([name, value]) {
  const bytes = Buffer.from(value)
  return Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(name),
    Buffer.from([stringType, 0, bytes.length]),
    bytes,
  ])
}

/**
 * @param {Record<string, string>} headers short texts
 * @param {object} payload
 * @returns {Buffer}
 */
export function message(headers, payload) {
  const head = Buffer.concat(Object.entries(headers).map(header))
  const body = Buffer.from(JSON.stringify(payload))
  const lengths = Buffer.concat([uint32(head.length + body.length + 16), uint32(head.length)])
  const whole = Buffer.concat([lengths, uint32(crc32(lengths)), head, body])
  return Buffer.concat([whole, uint32(crc32(whole))])
}
