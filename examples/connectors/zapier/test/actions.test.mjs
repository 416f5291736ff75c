import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { databases } from '../../testing/service.mjs'
import { App, core, failure, listen, message, start } from './support.mjs'

const act = (run, key, inputData) => run(`creates.${key}.operation.perform`, { inputData })
const find = (run, key, inputData) => run(`searches.${key}.operation.perform`, { inputData })

for (const database of databases()) {
  test(`drop-downs on ${database.name}`, async t => {
    const { service, run } = await start(t, database)

    await t.test('all campaigns, a page at a time', async () => {
      const made = []
      for (let number = 0; number < 103; number++) {
        const { uuid, title } = await service.campaign(`Campaign ${number}`)
        made.unshift({ id: uuid, title })
      }
      const page = number => run('triggers.campaigns.operation.perform', { meta: { isFillingDynamicDropdown: true, page: number } })
      assert.deepEqual(await page(0), made.slice(0, 100))
      assert.deepEqual(await page(1), made.slice(100))
      assert.deepEqual(await page(2), [])
      assert.deepEqual(await page(0), made.slice(0, 100))
    })

    await t.test('a campaign is found by a part of its title', async () => {
      const exact = await service.campaign('Été {{2027}} & more')
      const longer = await service.campaign('Grants: été {{2027}} & more!')
      const found = await find(run, 'find_campaign', { title: 'été {{2027}} & more' })
      assert.deepEqual(found.map(({ id }) => id), [longer.uuid, exact.uuid])
      const first = await find(run, 'find_campaign', { title: 'Été {{2027}} & more' })
      assert.deepEqual(first.map(({ id }) => id), [exact.uuid, longer.uuid])
      assert.deepEqual(await find(run, 'find_campaign', { title: 'there is none' }), [])
    })
  })

  test(`actions on ${database.name}`, async t => {
    const { service, run } = await start(t, database)
    const campaign = await service.campaign('Any names')
    const path = `/v1/campaigns/${campaign.uuid}/responses`
    const { uuid: response } = await service.response(campaign)
    const here = { campaign: campaign.uuid, response }
    const count = async () => (await service.get(path)).total

    await t.test('a response to a campaign without modules', async () => {
      const fields = await run(App.creates.create_response.operation.inputFields.find(field => typeof field === 'function'),
        { inputData: here })
      assert.deepEqual(fields.map(({ key }) => key), ['answers', 'answersJson'])
      const made = await act(run, 'create_response', {
        campaign: campaign.uuid,
        email: 'ada@example.com',
        firstName: 'Ada',
        answers: { 'Name, or "name"': 'Grüße, {{name}} 世界', empty: '' },
        answersJson: '{"languages":["English","French"],"age":7}',
      })
      const kept = await service.get(`${path}/${made.id}`)
      assert.deepEqual(made, { id: kept.uuid, ...kept })
      assert.deepEqual(kept.user, { email: 'ada@example.com', firstName: 'Ada', lastName: '' })
      assert.deepEqual(kept.responses, {
        'Name, or "name"': { value: ['Grüße, {{name}} 世界'] },
        languages: { value: ['English', 'French'] },
        age: { value: ['7'] },
      })
    })

    await t.test('answers that can not be meant are refused', async () => {
      const refused = async more => message(await failure(
        act(run, 'create_response', { campaign: campaign.uuid, email: 'ada@example.com', ...more })))
      assert.match(await refused({ answersJson: '{' }), /^Answers as JSON is not JSON: /)
      for (const answersJson of ['["a"]', 'null', '{"a":{"b":1}}', '{"a":[["b"]]}']) {
        assert.match(await refused({ answersJson }), /must be an object whose members/, answersJson)
      }
      assert.match(await refused({ answers: { a: {} } }), /The answer to a is not text/)
      for (const nothing of [undefined, null, '', ' ', 'undefined', 'null', '[object Object]', {}]) {
        assert.match(await refused({ email: nothing }), nothing ? /The field email is empty/ : /email/)
        for (const [key, field] of [['add_comment', 'comment'], ['update_status', 'status'], ['add_comment', 'response']]) {
          const error = await failure(act(run, key, { ...here, comment: 'x', status: 'x', [field]: nothing }))
          assert.match(message(error), new RegExp(`The field ${field} is empty`), `${field} ${nothing}`)
        }
      }
      assert.match(await refused({ answers: { a: 'x' }, answersJson: '{"a":"y"}' }), /The module a is answered twice/)
    })

    await t.test('a response without an address', async () => {
      const { uuid } = await service.campaign('Anonymous', { requireEmail: false })
      const made = await act(run, 'create_response', { campaign: uuid, answers: { a: 'x' } })
      assert.equal(made.user.email, '')
    })

    await t.test('a response to a campaign with modules', async () => {
      const { uuid } = await service.campaign('Modules', {
        modules: [
          { name: 'été & hiver', label: 'Summer and winter', required: true },
          { name: 'land', type: 'choice', options: ['FR', { value: 'GB', label: 'Great Britain' }] },
          { name: 'languages', multiple: true },
          { name: 'adult', type: 'boolean' },
          { name: 'born', type: 'date' },
          { name: 'pounds', type: 'number' },
          { name: 'why', type: 'longtext', required: true, showIf: { module: 'land', equals: ['FR'] } },
          { name: 'stars', type: 'rating' },
          { name: 'terms', type: 'consent' },
          { name: 'scan', type: 'file' },
          { name: 'rest', type: 'section', page: true },
          { name: 'meal', type: 'choice', options: ['Fish'], other: true },
        ],
      })
      const inputData = { campaign: uuid, email: 'ada@example.com' }
      const fields = await run(App.creates.create_response.operation.inputFields.find(field => typeof field === 'function'),
        { inputData })
      const about = fields.map(({ label, type, required, list, choices }) => [label, type, required, list, choices?.map(c => c.value)])
      assert.deepEqual(about, [
        ['Summer and winter', 'string', true, undefined, undefined],
        ['land', 'string', false, undefined, ['FR', 'GB']],
        ['languages', 'string', false, true, undefined],
        ['adult', 'boolean', false, undefined, undefined],
        ['born', 'string', false, undefined, undefined],
        ['pounds', 'string', false, undefined, undefined],
        ['why', 'text', false, undefined, undefined],
        ['stars', 'string', false, undefined, undefined],
        ['terms', 'string', false, undefined, ['true']],
        ['meal', 'string', false, undefined, undefined],
      ])
      const values = ['both', 'GB', ['English', 'French'], false, '1815-12-10', '1.50']
      fields.forEach(({ key }, number) => { inputData[key] = values[number] })
      const { responses } = await act(run, 'create_response', inputData)
      assert.deepEqual(responses, {
        'été & hiver': { value: ['both'] },
        land: { value: ['GB'] },
        languages: { value: ['English', 'French'] },
        adult: { value: ['false'] },
        born: { value: ['1815-12-10'] },
        pounds: { value: ['1.50'] },
      })
    })

    await t.test('a status', async () => {
      const made = await act(run, 'update_status', { ...here, status: 'validated' })
      assert.equal(made.id, response)
      assert.equal((await service.get(`${path}/${response}`)).status, 'validated')
      const error = await failure(act(run, 'update_status', { ...here, status: 'x'.repeat(65) }))
      assert.match(message(error), /^Unprocessable Entity: .*\n\/status must have/)
    })

    await t.test('a comment, as it was written', async () => {
      const comment = 'Dear {{name}},\n"ça va"? 世界 \\ {{ bundle }}'
      const made = await act(run, 'add_comment', { ...here, comment })
      const { items: [kept] } = await service.get(`${path}/${response}/comments`)
      assert.deepEqual(made, { id: kept.uuid, ...kept })
      assert.equal(kept.body, comment)
      assert.equal(kept.author, 'connector')
    })

    await t.test('a response is found by its reference, or the newest by its submitter', async () => {
      const email = `${randomUUID()}@example.com`
      const made = []
      for (let number = 0; number < 2; number++) {
        made.unshift((await act(run, 'create_response', { campaign: campaign.uuid, email })).id)
      }
      const { reference } = await service.get(`${path}/${made[1]}`)
      const ids = found => found.map(({ id }) => id)
      assert.deepEqual(ids(await find(run, 'find_response', { campaign: campaign.uuid, email })), made)
      assert.deepEqual(ids(await find(run, 'find_response', { campaign: campaign.uuid, reference })), [made[1]])
      assert.deepEqual(await find(run, 'find_response', { campaign: campaign.uuid, email: 'none@example.com' }), [])
      const error = await failure(find(run, 'find_response', { campaign: campaign.uuid }))
      assert.match(message(error), /^Fill in Reference or Submitter Email/)
    })

    await t.test('a step that is replayed is done once, and an equal one that is meant is done', async () => {
      const inputData = { campaign: campaign.uuid, email: 'twice@example.com' }
      const before = await count()
      const first = await act(run, 'create_response', inputData)
      const second = await act(run, 'create_response', inputData)
      assert.notEqual(second.id, first.id)
      const onceId = `évènement ${randomUUID()}`
      const third = await act(run, 'create_response', { ...inputData, onceId })
      assert.deepEqual(await act(run, 'create_response', { ...inputData, onceId }), third)
      assert.notEqual((await act(run, 'create_response', { ...inputData, onceId: `${onceId}, next` })).id, third.id)
      assert.equal(await count(), before + 4)

      // The same value in two steps of a Zap does not make one out of two.
      const comment = await act(run, 'add_comment', { ...here, comment: 'once', onceId })
      assert.deepEqual(await act(run, 'add_comment', { ...here, comment: 'once', onceId }), comment)
      const error = await failure(act(run, 'add_comment', { ...here, comment: 'other', onceId }))
      assert.equal(JSON.parse(error.message).code, 'idempotency_mismatch')
    })

    await t.test('a request whose answer is lost is done once', async t => {
      let lost = 0
      const keys = []
      const proxy = await listen(t, async (request, body, response) => {
        keys.push(request.headers['idempotency-key'])
        const answer = await fetch(service.url + request.url, {
          method: request.method,
          headers: { authorization: request.headers.authorization, 'content-type': 'application/json',
            'idempotency-key': request.headers['idempotency-key'] },
          body,
        })
        const text = await answer.text()
        if (lost++ < 1) request.socket.destroy()
        else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
      })
      const before = await count()
      const inputData = { campaign: campaign.uuid, email: 'lost@example.com' }
      const made = await run('creates.create_response.operation.perform', { inputData, authData: { baseUrl: proxy } })
      assert.equal(lost, 2)
      assert.equal(new Set(keys).size, 1)
      assert.equal(await count(), before + 1)
      assert.equal((await service.get(`${path}/${made.id}`)).user.email, 'lost@example.com')
    })
  })
}

test('a service that is still busy with the request is asked again', async t => {
  let asked = 0
  const url = await listen(t, (request, body, response) => {
    const [status, content] = asked++ === 0
      ? [409, { title: 'Conflict', detail: 'A request with this Idempotency-Key is in progress.', code: 'idempotency_in_flight' }]
      : [201, { uuid: 'made' }]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content))
  })
  const bundle = { authData: { baseUrl: url, apiKey: 'secret' }, inputData: { campaign: 'c', response: 'r', comment: 'x' } }
  const made = await core.createAppTester(App)(App.creates.add_comment.operation.perform, bundle)
  assert.equal(made.id, 'made')
  assert.equal(asked, 2)
})
