/** Recognizes files by their first bytes: declared types may be wrong, and the provider trusts them (R1). */

/** Tests of a file's head as Latin-1 text, in order. */
const SIGNS: readonly [RegExp, string][] = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF.{4}WEBP/s, 'image/webp'],
  [/^.{4}ftyphe(?:ic|ix|vc)/s, 'image/heic'],
  [/^.{4}ftyp(?:mif1|msf1|heif)/s, 'image/heif'],
  [/^%PDF-/, 'application/pdf'],
  [/^RIFF.{4}WAVE/s, 'audio/wav'],
  [/^(?:ID3|\xff[\xfb\xf3\xf2])/, 'audio/mp3'],
  [/^\xff[\xf1\xf9]/, 'audio/aac'],
  [/^OggS/, 'audio/ogg'],
  [/^fLaC/, 'audio/flac'],
  [/^FORM.{4}AIF[FC]/s, 'audio/aiff'],
  [/^.{4}ftypM4A/s, 'audio/m4a'],
]

/** The media type of base64 data; undefined when no test matches. */
export function sniff(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, 24), 'base64').toString('latin1')
  return SIGNS.find(([sign]) => sign.test(head))?.[1]
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  heic: 'image/heic',
  heif: 'image/heif',
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  html: 'text/html',
  csv: 'text/csv',
  json: 'application/json',
  wav: 'audio/wav',
  mp3: 'audio/mp3',
  mp4: 'video/mp4',
  webm: 'video/webm',
}

/** The media type that a file name, or the path of an address, suggests. */
export function typeOfName(name: string): string | undefined {
  const extension = /\.([a-z0-9]+)(?:[?#].*)?$/is.exec(name)?.[1]?.toLowerCase()
  return extension && Object.hasOwn(EXTENSIONS, extension) ? EXTENSIONS[extension] : undefined
}
