import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databases } from '../../testing/service.mjs'
import { App, core, failure, listen, message, schema, start } from './support.mjs'

test('the app is valid as "zapier validate" checks it', async () => {
  const handler = core.createAppHandler(App)
  const { results } = await handler({ command: 'validate' })
  assert.deepEqual(results, [])
  const { results: definition } = await handler({ command: 'definition' })
  assert.deepEqual(schema.validateAppDefinition(definition).errors, [])
  assert.equal(definition.platformVersion, '19.1.0')
})

for (const database of databases()) {
  test(`connections on ${database.name}`, async t => {
    const { service, run } = await start(t, database)

    await t.test('a good key is named', async () => {
      const who = await run(App.authentication.test)
      assert.equal(who.account, service.account)
      assert.equal(who.keyName, 'connector')
      assert.match(who.permissions, /responses:write/)
      assert.equal(await run(App.authentication.connectionLabel, { inputData: who }), `${service.account} – connector`)
    })

    await t.test('an address with a slash or /v1 at its end is right, too', async () => {
      for (const baseUrl of [`${service.url}/`, ` ${service.url}/v1/ `]) {
        assert.equal((await run(App.authentication.test, { authData: { baseUrl } })).keyName, 'connector')
      }
    })

    await t.test('a bad key needs to be replaced', async () => {
      const error = await failure(run(App.authentication.test, {}, 'formsvc_wrong'))
      assert.equal(error.name, 'ExpiredAuthError')
      assert.match(error.message, /^Unauthorized: Send a valid API key/)
    })

    await t.test('a missing permission is named', async () => {
      const key = await service.newKey('responses:read')
      const error = await failure(run('triggers.campaigns.operation.perform', {}, key))
      assert.match(message(error), /^Forbidden: The key lacks the permission campaigns:read\./)
      assert.equal(JSON.parse(error.message).code, 'permission_denied')
    })

    await t.test('the permissions that the README lists are enough', async t => {
      const campaign = await service.campaign('Least', { modules: [{ name: 'note' }] })
      const response = (await service.response(campaign)).uuid
      const inputData = { campaign: campaign.uuid, response, email: 'ada@example.com', status: 'validated', comment: 'x' }
      const file = await listen(t, (request, body, answer) => answer.end('x'))
      const as = async (permissions, ...steps) => {
        const key = await service.newKey(permissions)
        for (const [what, bundle] of steps) await run(what, { inputData, ...bundle }, key)
      }
      const trigger = 'triggers.file_uploaded.operation'
      const [labels] = App.triggers.file_uploaded.operation.outputFields.filter(field => typeof field === 'function')
      const targetUrl = 'http://127.0.0.1:1/'
      await as('webhooks:read,webhooks:write,responses:read,files:read', [`${trigger}.performSubscribe`, { targetUrl }],
        [`${trigger}.performList`], [labels], [`${trigger}.performUnsubscribe`, { targetUrl }])
      assert.deepEqual(await service.webhooks(), [])
      await as('campaigns:read', ['triggers.campaigns.operation.perform'],
        ['searches.find_campaign.operation.perform', { inputData: { title: 'Least' } }])
      await as('responses:read', ['searches.find_response.operation.perform'])
      await as('responses:write', ...['create_response', 'update_status', 'add_comment']
        .map(name => [`creates.${name}.operation.perform`]), ['creates.upload_file.operation.perform', { inputData: { ...inputData, file } }])
    })

    await t.test('errors are in the words of the service, with everything that is wrong', async () => {
      const campaign = await service.campaign('Strict', {
        modules: [{ name: 'age', type: 'number' }, { name: 'land', type: 'choice', options: ['FR'], required: true }],
      })
      const inputData = { campaign: campaign.uuid, email: 'nobody', answers: { age: 'old' } }
      const error = await failure(run('creates.create_response.operation.perform', { inputData }))
      const problem = (await service.request('POST', `/v1/campaigns/${campaign.uuid}/responses`, {
        body: { user: { email: 'nobody' }, responses: { age: { value: ['old'] } } }, status: 422,
      })).body
      assert.equal(problem.errors.length, 3)
      for (const words of [problem.title, problem.detail, ...problem.errors.flatMap(e => [e.pointer, e.detail])]) {
        assert.ok(message(error).includes(words), `${words} is not in ${message(error)}`)
      }
      assert.equal(JSON.parse(error.message).status, 422)
    })
  })

  test(`a quota that is used up on ${database.name}`, async t => {
    const { service, run } = await start(t, database, '--quota', '2', '--quota-window', '24h')
    const inputData = { title: 'x' }
    for (let left = 2; left > 0; left--) await run('searches.find_campaign.operation.perform', { inputData })
    const error = await failure(run('searches.find_campaign.operation.perform', { inputData }))
    assert.equal(error.name, 'ThrottledError')
    assert.match(message(error), /^Too Many Requests: The quota of 2 requests/)
    const answer = await service.request('GET', '/v1/me', { status: 429 })
    const delay = JSON.parse(error.message).delay
    assert.ok(delay >= answer.headers.get('retry-after') && delay <= 24 * 3600, `delay ${delay}`)
  })
}

test('an address that is not safe or not the service is refused', async t => {
  const tester = core.createAppTester(App)
  const test = baseUrl => failure(tester(App.authentication.test, { authData: { baseUrl, apiKey: 'secret' } }))
  for (const baseUrl of ['', 'forms.example.com', 'http://forms.example.com', 'http://127.0.0.1.example.com',
    'ftp://127.0.0.1', 'https://user@forms.example.com', 'https://forms.example.com?x']) {
    assert.match(message(await test(baseUrl)), /^The address of the service must |^The address of the service is not a URL/, baseUrl)
  }
  const other = await listen(t, (request, body, response) => {
    if (request.url.startsWith('/moved')) response.writeHead(301, { location: 'https://elsewhere.example/' }).end()
    else response.writeHead(404).end('<html>not here</html>')
  })
  assert.match(message(await test(other)), /answered 404, but not as the service does/)
  assert.match(message(await test(`${other}/moved`)), /redirect \(301\) to https:\/\/elsewhere\.example\//)
})

test('a service that is not ready is asked again later', async t => {
  const url = await listen(t, (request, body, response) => {
    response.writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': '7' })
      .end(JSON.stringify({ title: 'Service Unavailable', detail: 'The store does not answer.', code: 'unavailable' }))
  })
  const tester = core.createAppTester(App)
  const error = await failure(tester(App.authentication.test, { authData: { baseUrl: url, apiKey: 'secret' } }))
  assert.equal(error.name, 'ThrottledError')
  assert.deepEqual(JSON.parse(error.message), { message: 'Service Unavailable: The store does not answer.', delay: 7 })
})
