/** What is embedded, and the 3 MB of vectors that the simulated provider answers with. */

const VECTORS = 150
const DIMENSIONS = 1536
const PROMPT_TOKENS = 1_800

/** Numbers as models give them, the same ones every time. */
const vector = index =>
  Array.from({ length: DIMENSIONS }, (_, at) => Number((Math.sin(index * DIMENSIONS + at) / 20).toPrecision(9)))
const vectors = Array.from({ length: VECTORS }, (_, index) => vector(index))

export const request = ({ model }) =>
  JSON.stringify({
    model,
    input: vectors.map((_, index) => `Passage ${index} of a text that is to be found again by what it means.`),
    encoding_format: 'float',
  })

/** The provider's answer. */
export const answer = Buffer.from(
  JSON.stringify({
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    model: 'bench-embeddings-1',
    usage: { prompt_tokens: PROMPT_TOKENS, total_tokens: PROMPT_TOKENS },
  }),
)

/** Throws unless an answer holds every vector in its place, and the usage. */
export function checkEmbeddings(body) {
  const { data, usage } = JSON.parse(body)
  if (data.length !== VECTORS) throw new Error(`the answer has ${data.length} vectors`)
  for (const [at, { index, embedding }] of data.entries()) {
    const same = index === at && embedding.length === DIMENSIONS
    if (!same || [0, DIMENSIONS - 1].some(place => embedding[place] !== vectors[at][place]))
      throw new Error(`vector ${at} of the answer is not the provider's`)
  }
  if (usage?.prompt_tokens !== PROMPT_TOKENS) throw new Error(`the answer's prompt_tokens is ${usage?.prompt_tokens}`)
}
