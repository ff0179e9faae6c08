/** What stands at a path: literal paths, templates, methods. */
import t from 'tap'
import { Router } from '../../src/lib/router.ts'

const router = new Router<string>()
for (const [method, path] of [
  ['GET', '/v1/videos'],
  ['POST', '/v1/videos'],
  ['GET', '/v1/videos/{id}'],
  ['DELETE', '/v1/videos/{id}'],
  ['GET', '/v1/videos/{id}/content'],
  ['GET', '/v1/models/{+id}'],
  ['POST', '/v1beta/models/{+model}:generateContent'],
  ['POST', '/v1/videos/{id}/a.b'],
] as const) {
  router.add(method, path, `${method} ${path}`)
}

t.test('a path finds its literal row, else the first template that it fits', async t => {
  const rows: [method: string, path: string, value: string, params?: object][] = [
    ['GET', '/v1/videos', 'GET /v1/videos'],
    ['HEAD', '/v1/videos', 'GET /v1/videos'],
    ['GET', '/v1/videos/v_1', 'GET /v1/videos/{id}', { id: 'v_1' }],
    ['HEAD', '/v1/videos/v_1', 'GET /v1/videos/{id}', { id: 'v_1' }],
    ['DELETE', '/v1/videos/v%201', 'DELETE /v1/videos/{id}', { id: 'v 1' }],
    ['GET', '/v1/videos/a%2Fb', 'GET /v1/videos/{id}', { id: 'a/b' }],
    ['GET', '/v1/videos/v_1/content', 'GET /v1/videos/{id}/content', { id: 'v_1' }],
    ['GET', '/v1/models/acme/large', 'GET /v1/models/{+id}', { id: 'acme/large' }],
    ['POST', '/v1beta/models/a:b:generateContent', 'POST /v1beta/models/{+model}:generateContent', { model: 'a:b' }],
  ]
  for (const [method, path, value, params = {}] of rows) {
    const match = router.match(method, path)
    t.strictSame(match && 'value' in match && [match.value, { ...match.params }], [value, params], `${method} ${path}`)
  }
})

t.test('a path with other methods names them, and one with none is unknown', async t => {
  t.strictSame(router.match('PUT', '/v1/videos'), { allow: ['GET', 'HEAD', 'POST'] })
  t.strictSame(router.match('PUT', '/v1/videos/v_1'), { allow: ['DELETE', 'GET', 'HEAD'] })
  t.strictSame(router.match('GET', '/v1/videos/v_1/a.b'), { allow: ['POST'] })
  for (const path of ['/v1/videos/', '/v1/videos//content', '/v1/videos/v_1/axb', '/v1/models/', '__proto__', '/']) {
    t.equal(router.match('GET', path), undefined, path)
  }
  t.equal(router.match('GET', '/v1/videos/%ff'), undefined, 'what is not percent-encoded UTF-8')
  t.throws(() => router.add('GET', '/v1/x{id}', 'half a segment'), { message: /a parameter is a whole segment/ })
  t.throws(() => router.add('GET', '/v1/videos/{id}', 'again'), { message: 'two endpoints are at GET /v1/videos/{id}' })
})
