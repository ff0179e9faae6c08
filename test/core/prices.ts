/** Prices and usages with what they cost, computed by hand. */
import { type Price, parseDecimal } from '../../src/core/money.ts'
import type { Usage } from '../../src/core/usage.ts'

export type Rates = Price['rates']
const perUnit = new Set(['request', 'web_search', 'image', 'ocr_page', 'input_audio_hour'])
/** USD per million tokens, or per unit, as operators write them. */
export const rates = (written: Record<string, string>): Rates =>
  Object.fromEntries(Object.entries(written).map(([key, usd]) => [key, parseDecimal(usd, perUnit.has(key) ? 12 : 6)]))
export const flat = (written: Record<string, string>): Price => ({ rates: rates(written), tiers: [] })

export const base = { prompt: '2.5', completion: '10', input_cache_read: '0.25' }
/** Amounts in USD; those that are zero are left out. Null is an unknown cost. */
export const goldens: readonly (readonly [
  says: string,
  written: Record<string, string>,
  usage: Usage,
  cost: Record<string, string> | null,
])[] = [
  ['plain', base, { prompt: 1000, completion: 500 }, { input: '0.0025', output: '0.005', total: '0.0075' }],
  [
    'cached',
    base,
    { prompt: 1000, input_cache_read: 600 },
    { input: '0.001', cachedInput: '0.00015', total: '0.00115' },
  ],
  [
    'cached at no price of its own',
    { prompt: '2.5' },
    { prompt: 1000, input_cache_read: 600 },
    { input: '0.001', cachedInput: '0.0015', total: '0.0025' },
  ],
  [
    'written for 5 minutes and for 1 hour',
    { ...base, input_cache_write: '3.125', input_cache_write_1h: '5' },
    { prompt: 2000, input_cache_read: 500, input_cache_write: 800, input_cache_write_1h: 200 },
    { input: '0.00125', cachedInput: '0.000125', cacheWrite: '0.0035', total: '0.004875' },
  ],
  [
    'written for 1 hour at the price of 5 minutes',
    { ...base, input_cache_write: '3.125' },
    { prompt: 1000, input_cache_write_1h: 200 },
    { input: '0.002', cacheWrite: '0.000625', total: '0.002625' },
  ],
  [
    'written at no price',
    base,
    { prompt: 1000, input_cache_write: 400, input_cache_write_1h: 100 },
    { input: '0.0025', total: '0.0025' },
  ],
  [
    'images',
    { ...base, image: '0.01' },
    { prompt: 100, image: 2 },
    { input: '0.02025', imageInput: '0.02', total: '0.02025' },
  ],
  [
    'video, which is part of the prompt and costs as that',
    base,
    { prompt: 1000, input_video: 800 },
    { input: '0.0025', total: '0.0025' },
  ],
  [
    'images drawn',
    { ...base, image_output: '30' },
    { completion: 1300, image_output: 1290 },
    { output: '0.0388', imageOutput: '0.0387', total: '0.0388' },
  ],
  [
    'audio heard',
    { ...base, input_audio: '40' },
    { prompt: 1000, input_audio: 400 },
    { input: '0.0175', audioInput: '0.016', total: '0.0175' },
  ],
  [
    'audio heard again',
    { ...base, input_audio: '40', input_audio_cache_read: '4' },
    { prompt: 1000, input_audio: 400, input_cache_read: 600, input_audio_cache_read: 300 },
    { input: '0.00475', audioInput: '0.004', cachedInput: '0.001275', total: '0.006025' },
  ],
  [
    'audio heard again at no price of its own',
    { ...base, input_audio: '40' },
    { prompt: 1000, input_audio: 400, input_cache_read: 600, input_audio_cache_read: 300 },
    { input: '0.00475', audioInput: '0.004', cachedInput: '0.00015', total: '0.0049' },
  ],
  ['audio heard at no price', base, { prompt: 1000, input_audio: 400 }, { input: '0.0025', total: '0.0025' }],
  [
    'audio spoken',
    { ...base, output_audio: '80' },
    { completion: 300, output_audio: 200 },
    { output: '0.017', total: '0.017' },
  ],
  [
    'reasoning at its own price',
    { ...base, internal_reasoning: '20' },
    { completion: 1000, internal_reasoning: 600 },
    { output: '0.016', total: '0.016' },
  ],
  ['reasoning as completion', base, { completion: 1000, internal_reasoning: 600 }, { output: '0.01', total: '0.01' }],
  ['web searches', { ...base, web_search: '0.01' }, { prompt: 0, web_search: 3 }, { webSearch: '0.03', total: '0.03' }],
  [
    'a request',
    { ...base, request: '0.001' },
    { prompt: 1000 },
    { input: '0.0025', request: '0.001', total: '0.0035' },
  ],
  ['two requests', { ...base, request: '0.001' }, { request: 2 }, { request: '0.002', total: '0.002' }],
  ['only a request price', { request: '0.02' }, { prompt: 100, completion: 100 }, { request: '0.02', total: '0.02' }],
  [
    'more cached than there is',
    base,
    { prompt: 10, input_cache_read: 50 },
    { cachedInput: '0.0000125', total: '0.0000125' },
  ],
  ['half a nano-dollar', { prompt: '0.0005' }, { prompt: 1 }, { input: '0.000000001', total: '0.000000001' }],
  ['less than half', { prompt: '0.000499' }, { prompt: 1 }, {}],
  [
    'two halves',
    { prompt: '0.0005', completion: '0.0005' },
    { prompt: 1, completion: 1 },
    { input: '0.000000001', total: '0.000000001' },
  ],
  ['free', { prompt: '0', completion: '0' }, { prompt: 1000, completion: 1000 }, {}],
  [
    'prompt and request, of what has no completion',
    { prompt: '1', request: '0.02' },
    { prompt: 1 },
    { input: '0.000001', request: '0.02', total: '0.020001' },
  ],
  ['prompt and request, of words', { prompt: '1', request: '0.02' }, { prompt: 1, completion: 1 }, null],
  ['completion and request, of a prompt', { completion: '1', request: '0.02' }, { prompt: 1, completion: 1 }, null],
  [
    'prompt and request, of a picture',
    { prompt: '1', request: '0.02' },
    { prompt: 1, completion: 1290, output_images: 1 },
    { input: '0.000001', request: '0.02', total: '0.020001' },
  ],
  ['an unknown completion price', { prompt: '1' }, { prompt: 1, completion: 1 }, null],
  ['an unknown prompt price', { completion: '1' }, { prompt: 1, completion: 1 }, null],
  ['an unknown price that is not needed', { prompt: '1' }, { prompt: 2_000_000 }, { input: '2', total: '2' }],
]
