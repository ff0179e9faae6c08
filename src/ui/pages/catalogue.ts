/** The catalogue: models, their offers and prices. */
import type { ListedModel } from '../../admin/commands/catalogue.ts'
import { errors } from '../../lib/error.ts'
import { count } from '../format.ts'
import { type Html, html, link } from '../html.ts'
import { type Content, facts, mark, run, table, type Visit } from '../layout.ts'

const MODELS = 50

const placeOf = (query: URLSearchParams): number => Math.max(0, Math.floor(Number(query.get('from')) || 0))

/** Lists models with their cheapest offers first in the file. */
export async function models({ query, context }: Visit): Promise<Content> {
  const wanted = query.get('query')?.trim() ?? ''
  const found = await run<readonly ListedModel[]>(context, 'models.list', wanted === '' ? {} : { query: wanted })
  const onlyLive = query.get('live') === 'on'
  const kept = onlyLive ? found.filter(({ live }) => live) : found
  const from = placeOf(query)
  const address = (place: number) =>
    link('/ui/models', { query: wanted, live: onlyLive ? 'on' : '', from: place || '' })
  return {
    title: 'Models',
    body: html`<form action="/ui/models" method="get" class="row" role="search">
<label for="query">Part of a name</label><input type="search" id="query" name="query" value="${wanted}">
<label><input type="checkbox" name="live" value="on"${onlyLive && html` checked`}> only live</label>
<button>Search</button></form>
<p class="hint">${count(kept.length)} models. Prices are USD per million tokens.</p>
${offers(kept.slice(from, from + MODELS))}
<p class="row">${from > 0 && html`<a rel="prev" href="${address(Math.max(0, from - MODELS))}">Back</a>`}
${from + MODELS < kept.length && html`<a rel="next" href="${address(from + MODELS)}">More</a>`}</p>`,
  }
}

const state = (isLive: boolean): Html => (isLive ? mark('good', 'live') : mark('plain', 'not live'))

const offers = (found: readonly ListedModel[]): Html =>
  table(
    'models',
    'Models',
    'Model, Provider, State, Input, Output, Context, Longest answer',
    found.flatMap(({ id, live, providers, contextLength }) => {
      const name = html`<a href="/ui/models/${encodeURIComponent(id)}">${id}</a>`
      if (providers.length === 0) return [[name, '', state(live), '', '', contextLength && count(contextLength), '']]
      return providers.map((one, index) => [
        index === 0 ? name : html`<span class="hint">${id}</span>`,
        one.provider,
        state(one.live),
        one.inputPerMillion,
        one.outputPerMillion,
        one.contextLength && count(one.contextLength),
        one.maxOutput && count(one.maxOutput),
      ])
    }),
    'No model matches.',
  )

/** Shows one model with every price of its offers. */
export async function model({ id, context }: Visit): Promise<Content> {
  const found = (await run<readonly ListedModel[]>(context, 'models.list')).find(one => one.id === id)
  if (!found) throw errors.notFound(`There is no model "${id}".`)
  return {
    title: found.id,
    body: html`<p><a href="/ui/models">All models</a></p>
${facts([
  ['Name', found.name],
  ['Family', found.family],
  ['State', state(found.live)],
  ['Aliases', found.aliases.join(', ')],
  ['Context', found.contextLength && count(found.contextLength)],
  ['Longest answer', found.maxOutput && count(found.maxOutput)],
  ['Deprecated', found.deprecatedAt],
  ['Deactivated', found.deactivatedAt],
])}
<p class="row"><a href="${link('/ui/routes', { model: found.id })}">Explain its route</a>
<a href="${link('/ui/requests', { model: found.id })}">Its requests</a>
<a href="${link('/ui/playground', { model: found.id })}">Try it</a></p>
<h2>Offers</h2>
${table(
  'offers',
  'Offers',
  'Provider, Its name there, State, Web search, Prices as declared',
  found.providers.map(one => [
    one.provider,
    one.externalId,
    state(one.live),
    one.webSearch ? 'yes' : 'no',
    one.pricing === null ? 'unknown' : html`<code>${JSON.stringify(one.pricing)}</code>`,
  ]),
  'No provider offers it.',
)}`,
  }
}
