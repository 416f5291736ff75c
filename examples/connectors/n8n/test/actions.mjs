// What the action node does, in a real n8n and with the real service.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'

import { databases, startService } from '../../testing/service.mjs'
import { Actions, byId } from './act.mjs'
import { actionType, output } from './n8n.mjs'
import { n8n } from './shared.mjs'

const modules = [
  { name: 'name', label: 'Your name', type: 'text', required: true },
  { name: 'country', label: 'Country', type: 'choice', options: ['FR', { value: 'GB', label: 'Great Britain' }] },
  { name: 'languages', label: 'Languages', type: 'text', multiple: true },
  { name: 'age', label: 'Age', type: 'number' },
  { name: 'born', label: 'Born on', type: 'date' },
  { name: 'news', label: 'Newsletter', type: 'boolean' },
  { name: 'why', label: 'Why?', type: 'longtext', required: true, showIf: { module: 'country', equals: ['GB'] } },
  { name: 'stars', label: 'Stars', type: 'rating' },
  { name: 'terms', label: 'Terms', type: 'consent' },
  { name: 'scan', label: 'A scan', type: 'file' },
  { name: 'rest', label: 'The rest', type: 'section', page: true },
  { name: 'meal', label: 'Meal', type: 'choice', options: ['Fish'], other: true },
]

for (const database of databases()) {
  describe(`actions, on ${database.name}`, () => {
    let service, credentials, actions, campaign
    before(async () => {
      service = await startService(database)
      credentials = await n8n.credential(service)
      actions = new Actions(n8n, credentials)
      campaign = await service.campaign('Guest book')
    })
    after(() => service?.stop())

    // What the API gives, since most of these tests compare with it.
    const onCampaign = more => ({ resource: 'response', campaign: byId(campaign.uuid), simple: false, ...more })
    const responses = async (of = campaign) => (await service.get(`/v1/campaigns/${of.uuid}/responses?order=asc`)).items
    const rest = (path, name, more) => n8n.rest('POST', `/rest/dynamic-node-parameters/${path}`, {
      path: 'parameters.campaign', nodeTypeAndVersion: { name: actionType, version: 1 },
      currentNodeParameters: {}, credentials, methodName: name, ...more,
    })

    test('the nodes are there, and the credential is tested with a request', async () => {
      const types = await (await fetch(`${n8n.url}/types/nodes.json`, { headers: { cookie: n8n.cookie } })).json()
      const names = types.map(({ name }) => name).filter(name => name.startsWith('n8n-nodes-formsvc.'))
      assert.deepEqual(names.sort(), ['formsvc', 'formsvcPollTrigger', 'formsvcTool', 'formsvcTrigger'].map(name => `n8n-nodes-formsvc.${name}`))

      const check = apiKey => n8n.rest('POST', '/rest/credentials/test', {
        credentials: { id: '', name: 'new', type: 'formsvcApi', data: { baseUrl: `${service.url}/`, apiKey } },
      })
      assert.equal((await check(service.key)).status, 'OK')
      const { status, message } = await check('wrong')
      assert.equal(status, 'Error')
      assert.match(message, /401|Unauthorized|Authorization/i)
    })

    test('the list of campaigns is searched by title, and has several pages', async () => {
      const tag = randomUUID()
      for (let i = 0; i < 51; i++) await service.campaign(`Ünïcode ${tag} ${i}`)
      const search = (filter, paginationToken) =>
        rest('resource-locator-results', 'searchCampaigns', { filter, paginationToken })
      const first = await search(`nïcode ${tag.toUpperCase()}`)
      assert.equal(first.results.length, 50)
      const second = await search(`nïcode ${tag.toUpperCase()}`, first.paginationToken)
      assert.equal(second.results.length, 1)
      assert.equal(second.paginationToken, undefined)
      const all = [...first.results, ...second.results]
      assert.equal(new Set(all.map(({ value }) => value)).size, 51)
      assert.ok(all.every(({ name }) => name.includes(tag)))
      assert.ok((await search()).results.length === 50)
    })

    test('the questions of a campaign become fields, and their answers a response', async () => {
      const form = await service.campaign('With questions', { modules })
      const { fields } = await rest('resource-mapper-fields', 'getModules', {
        path: 'parameters.modules', currentNodeParameters: { campaign: byId(form.uuid) },
      })
      assert.deepEqual(fields.map(({ id, displayName, type, required }) => [id, displayName, type, required]), [
        ['name', 'Your name', 'string', true], ['country', 'Country', 'options', false],
        ['languages', 'Languages', 'array', false], ['age', 'Age', 'number', false],
        ['born', 'Born on', 'dateTime', false], ['news', 'Newsletter', 'boolean', false], ['why', 'Why?', 'string', false],
        ['stars', 'Stars', 'number', false], ['terms', 'Terms', 'options', false], ['meal', 'Meal', 'string', false],
      ])
      assert.deepEqual(fields[1].options, [{ name: 'FR', value: 'FR' }, { name: 'Great Britain', value: 'GB' }])

      const run = await actions.prepare(onCampaign({
        operation: 'create', campaign: byId(form.uuid), email: 'ada@example.com', answersFrom: 'modules',
        modules: {
          mappingMode: 'defineBelow', schema: fields,
          value: {
            name: '={{ $json.name }}', country: 'FR', languages: '["English","Français"]', age: 36.5,
            born: '1815-12-10T00:00:00', news: false,
          },
        },
        createOptions: { firstName: 'Ada', lastName: 'Lovelace' },
      }))
      const { items: [made] } = await run([{ name: 'Ada, 世界' }])
      assert.deepEqual(made.user, { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' })
      assert.deepEqual(made.responses, {
        name: { value: ['Ada, 世界'] }, country: { value: ['FR'] }, languages: { value: ['English', 'Français'] },
        age: { value: ['36.5'] }, born: { value: ['1815-12-10'] }, news: { value: ['false'] },
      })

      const automatic = await actions.prepare(onCampaign({
        operation: 'create', campaign: byId(form.uuid), email: '={{ $json.email }}', answersFrom: 'modules',
        modules: { mappingMode: 'autoMapInputData', schema: fields, value: null },
      }))
      const { items } = await automatic([
        { email: 'grace@example.com', name: 'Grace', languages: ['COBOL', 'English'], country: '' },
        { email: 'a@example.com', name: 'A', born: '2026-11-20T23:00:00.000Z' }, // in Paris, the zone of the workflow, it is the 21st
        { email: 'a@example.com', name: 'A', born: '2026-11-20T23:59:59' },
        { email: 'a@example.com', name: 'A', born: '2026-11-21T00:30:00+02:00' },
        { email: 'a@example.com', name: 'A', born: '2026-11-21' },
      ])
      assert.deepEqual(items[0].responses, { name: { value: ['Grace'] }, languages: { value: ['COBOL', 'English'] } })
      assert.deepEqual(items.slice(1).map(({ responses }) => responses.born.value[0]), ['2026-11-21', '2026-11-20', '2026-11-20', '2026-11-21'])

      const anonymous = await service.campaign('Anonymous', { requireEmail: false })
      const nobody = await actions.prepare(onCampaign({ operation: 'create', campaign: byId(anonymous.uuid), email: '', answersFrom: 'json', answersJson: '{}' }))
      assert.equal((await nobody([{}])).items[0].user.email, '')
    })

    test('responses are created from names and values, and from JSON, one for each item', async () => {
      const empty = await service.campaign('No questions')
      const pairs = await actions.prepare(onCampaign({
        operation: 'create', campaign: byId(empty.uuid), email: 'ada@example.com', answersFrom: 'pairs',
        pairs: { pair: [
          { name: 'colour', value: '={{ $json.colour }}' }, { name: 'size', value: 'L' }, { name: 'colour', value: 'bleu' },
        ] },
      }))
      const { items, execution } = await pairs([{ colour: 'rouge' }, { colour: 'vert' }])
      assert.deepEqual(items.map(item => item.responses.colour.value), [['rouge', 'bleu'], ['vert', 'bleu']])
      assert.deepEqual(output(execution, 'node 2').map(({ pairedItem }) => pairedItem), [{ item: 0 }, { item: 1 }])

      const json = await actions.prepare(onCampaign({
        operation: 'create', campaign: byId(empty.uuid), email: 'ada@example.com', answersFrom: 'json',
        answersJson: '={{ JSON.stringify($json) }}',
      }))
      const { items: [made] } = await json([{ a: 'text', b: ['one', 'two'], c: { value: ['as it is'] }, d: 5, e: [] }])
      assert.deepEqual(made.responses, {
        a: { value: ['text'] }, b: { value: ['one', 'two'] }, c: { value: ['as it is'] }, d: { value: ['5'] }, e: { value: [] },
      })
      assert.equal((await responses(empty)).length, 3)
    })

    test('a response is read, its status changed, and a comment added', async () => {
      const made = await service.response(campaign)
      const on = more => onCampaign({ responseUuid: '={{ $json.uuid }}', ...more })
      const status = await actions.prepare(on({ operation: 'updateStatus', status: 'validated' }))
      assert.equal((await status([made])).items[0].status, 'validated')
      const get = await actions.prepare(on({ operation: 'get' }))
      assert.equal((await get([made])).items[0].status, 'validated')
      const comment = await actions.prepare(on({ operation: 'addComment', comment: 'Très bien 👍' }))
      assert.equal((await comment([made])).items[0].body, 'Très bien 👍')
      for (const empty of ['={{ $json.missing }}', "={{ '' + $json.missing }}", '={{ $json }}', '={{ null }}']) {
        const nothing = await actions.prepare(on({ operation: 'addComment', comment: empty }))
        assert.equal((await nothing([made])).error.message, 'No comment is given', empty)
      }
      const nothing = await actions.prepare(on({ operation: 'updateStatus', status: '={{ $json.missing }}' }))
      assert.equal((await nothing([made])).error.message, 'No status is given')
      const { items } = await service.get(`/v1/campaigns/${campaign.uuid}/responses/${made.uuid}/comments`)
      assert.deepEqual(items.map(({ body }) => body), ['Très bien 👍'])
    })

    test('by default a response has its answers as plain values under their names', async () => {
      const simple = more => {
        const { simple: raw, ...parameters } = onCampaign(more)
        return actions.prepare(parameters)
      }
      const wanted = { one: 'Ada', several: ['English', 'French'], none: null }
      const create = await simple({ operation: 'create', email: 'ada@example.com', answersFrom: 'json', answersJson: '={{ $json }}' })
      const { items: [made] } = await create([wanted])
      const raw = await service.get(`/v1/campaigns/${campaign.uuid}/responses/${made.uuid}`)
      assert.deepEqual(raw.responses, { one: { value: ['Ada'] }, several: { value: ['English', 'French'] }, none: { value: [] } })
      const { responses: left, ...rest } = raw
      assert.deepEqual(made, { ...rest, answers: wanted })

      const get = await simple({ operation: 'get', responseUuid: made.uuid })
      assert.deepEqual((await get([{}])).items, [{ ...rest, answers: wanted }])
      const list = await simple({ operation: 'getAll', returnAll: false, limit: 1 })
      assert.deepEqual((await list([{}])).items, [{ ...rest, answers: wanted }])
      const update = await simple({ operation: 'updateStatus', responseUuid: made.uuid, status: 'validated' })
      const { items: [updated] } = await update([{}])
      assert.deepEqual([updated.status, updated.answers, updated.responses], ['validated', wanted, undefined])
      // What comes out goes in again.
      const again = await create([made.answers])
      assert.deepEqual(again.items[0].answers, wanted)
    })

    test('lists are filtered, limited, or read to their end', async () => {
      const many = await service.campaign('Many responses')
      for (let i = 0; i < 205; i++) await service.response(many, {})
      const on = more => onCampaign({ operation: 'getAll', campaign: byId(many.uuid), ...more })
      const all = await actions.prepare(on({ returnAll: true }))
      assert.equal(new Set((await all([{}])).items.map(({ uuid }) => uuid)).size, 205)
      const some = await actions.prepare(on({ returnAll: false, limit: 3 }))
      assert.equal((await some([{}])).items.length, 3)

      const [first, second] = await responses(many)
      await service.request('PATCH', `/v1/campaigns/${many.uuid}/responses/${first.uuid}`, { body: { status: 'validated' } })
      await service.request('PATCH', `/v1/campaigns/${many.uuid}/responses/${second.uuid}`, { body: { status: 'refused' } })
      const filtered = await actions.prepare(on({
        returnAll: true,
        filters: {
          status: ['validated', 'refused'], email: 'ada@example.com', reference: '={{ $json.reference }}',
          createdAfter: '2001-01-01T00:00:00', createdBefore: '2101-01-01T00:00:00',
        },
      }))
      assert.deepEqual((await filtered([first])).items.map(({ uuid }) => uuid), [first.uuid])

      const campaigns = await actions.prepare({ resource: 'campaign', operation: 'getAll', returnAll: false, limit: 5, search: 'MANY resp' })
      assert.deepEqual((await campaigns([{}])).items.map(({ uuid }) => uuid), [many.uuid])
      const one = await actions.prepare({ resource: 'campaign', operation: 'get', campaign: byId(many.uuid) })
      assert.equal((await one([{}])).items[0].title, 'Many responses')
    })

    test('a file goes up and comes down byte for byte, with its name', async () => {
      const made = await service.response(campaign)
      const bytes = Buffer.concat([Buffer.alloc(1000), randomBytes(5_000_000), Buffer.alloc(1000)])
      const name = 'reçu n° 1 (été).pdf'
      const on = { campaign: byId(campaign.uuid), responseUuid: made.uuid }
      const upload = await actions.prepareUpload({
        resource: 'file', operation: 'upload', binaryProperty: 'data', uploadOptions: { module: 'receipt' }, ...on,
      })
      const { items: [file] } = await upload({ name, type: 'application/pdf', bytes })
      assert.deepEqual([file.name, file.size, file.contentType, file.module], [name, bytes.length, 'application/pdf', 'receipt'])
      assert.ok(bytes.equals((await service.request('GET', `/v1/files/${file.uuid}`)).body))

      const download = await actions.prepareDownload({ resource: 'file', operation: 'download', fileUuid: file.uuid, binaryProperty: 'data' })
      const { bytes: received, headers, execution } = await download()
      assert.ok(bytes.equals(received))
      assert.equal(headers.get('content-type'), 'application/pdf')
      const [{ json, binary }] = output(execution, 'node 1')
      assert.deepEqual(json, { uuid: file.uuid, name, contentType: 'application/pdf', size: bytes.length })
      assert.equal(binary.data.fileName, name)

      // What n8n has on disk is sent from there.
      const copy = await actions.prepareCopy(
        { resource: 'file', operation: 'download', fileUuid: file.uuid, binaryProperty: 'received' },
        { resource: 'file', operation: 'upload', binaryProperty: 'received', ...on })
      const { items: [copied], execution: copying } = await copy()
      assert.match(output(copying, 'node 1')[0].binary.received.id, /^filesystem/)
      assert.deepEqual([copied.name, copied.size, copied.contentType], [name, bytes.length, 'application/pdf'])
      assert.ok(bytes.equals((await service.request('GET', `/v1/files/${copied.uuid}`)).body))

      const empty = await upload({ name: 'empty', type: 'text/plain', bytes: Buffer.alloc(0) })
      assert.equal(empty.items[0].size, 0)

      const list = await actions.prepare({ resource: 'file', operation: 'getAll', returnAll: true, ...on })
      assert.deepEqual((await list([{}])).items.map(({ uuid }) => uuid), [empty.items[0].uuid, copied.uuid, file.uuid])
    })

    test('what the service refuses is told in its own words', async () => {
      const form = await service.campaign('With questions', { modules })
      const parameters = onCampaign({
        operation: 'create', campaign: byId(form.uuid), email: '={{ $json.email }}', answersFrom: 'json', answersJson: '={{ $json.answers }}',
      })
      const bad = { email: 'no address', answers: { country: 'XX', age: 'old' } }
      const { body: problem } = await service.request('POST', `/v1/campaigns/${form.uuid}/responses`, {
        status: 422,
        body: { user: { email: bad.email }, responses: { country: { value: ['XX'] }, age: { value: ['old'] } } },
      })
      assert.ok(problem.errors.length >= 4)
      const told = (message, description) => {
        assert.equal(message, `${problem.title}: ${problem.detail}`)
        for (const { pointer, detail } of problem.errors) assert.ok(description.includes(`${pointer}: ${detail}`), description)
      }

      const fails = await actions.prepare(parameters)
      const { status, error } = await fails([bad])
      assert.equal(status, 500)
      assert.equal(error.name, 'NodeApiError')
      told(error.message, error.description)

      const good = { email: 'ada@example.com', answers: { name: 'Ada' } }
      const goesOn = await actions.prepare(parameters, { onError: 'continueRegularOutput' })
      const { items } = await goesOn([bad, good])
      told(items[0].error, items[0].description)
      assert.equal(items[1].user.email, 'ada@example.com')

      const missing = await actions.prepareDownload({ resource: 'file', operation: 'download', fileUuid: randomUUID(), binaryProperty: 'data' })
      assert.match((await missing()).error.message, /^Not Found: /)
      const unnamed = await actions.prepare(onCampaign({ operation: 'get', responseUuid: '={{ $json.nothing }}' }))
      assert.equal((await unnamed([{}])).error.message, 'No response is given')
    })
  })
}
