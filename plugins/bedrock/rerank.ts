/** Bedrock's rerank wire, `bedrock.rerank`, of its agent runtime (docs/contract.md#rerank). */
import { objectIn, type RerankRequest, type Target, type WireRequest } from '../../src/plugin.ts'
import { type Ranking, rerankWire } from '../shared/rerank.ts'

const REGION = /\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\./

function encode({ query, documents, top_n }: Readonly<RerankRequest>, target: Target): WireRequest {
  return {
    path: '/rerank',
    body: {
      queries: [{ type: 'TEXT', textQuery: { text: query } }],
      sources: documents.map(text => ({
        type: 'INLINE',
        inlineDocumentSource: { type: 'TEXT', textDocument: { text } },
      })),
      rerankingConfiguration: {
        type: 'BEDROCK_RERANKING_MODEL',
        bedrockRerankingConfiguration: {
          modelConfiguration: { modelArn: arnOf(target) },
          numberOfResults: Math.min(top_n ?? documents.length, documents.length),
        },
      },
    },
  }
}

/** An id that is an ARN is used unchanged. */
function arnOf({ mapping: { externalId }, region, provider, baseUrl = provider.baseUrl }: Target): string {
  if (externalId.startsWith('arn:')) return externalId
  const { auth } = provider
  const own = auth.scheme === 'aws-sigv4' ? auth.region : undefined
  return `arn:aws:bedrock:${region ?? REGION.exec(baseUrl)?.[1] ?? own ?? 'us-east-1'}::foundation-model/${externalId}`
}

/** Answers count nothing. */
function read(answer: unknown, units: number): Ranking {
  const { results } = objectIn(answer)
  return { list: results, usage: { request: units } }
}

/** The operation `Rerank` of the Agent Runtime API. */
export const rerank = rerankWire('bedrock.rerank', encode, read)
