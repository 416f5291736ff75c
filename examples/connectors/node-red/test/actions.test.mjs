// The action node: every operation, errors, and repetitions.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { databases, eventually } from '../../testing/service.mjs'
import { account, action, startBoth, startRelay, tab } from './nodered.mjs'

const msg = (field, path) => ({ [field]: path, [`${field}Type`]: 'msg' })
const ofCampaign = msg('campaign', 'payload.campaign')
const ofResponse = { ...ofCampaign, ...msg('response', 'payload.response') }
// Bytes come as they are; where they belong is in headers.
const upload = `
  const {filename, contenttype, campaign, response} = msg.req.headers
  if (filename) msg.filename = decodeURIComponent(filename)
  if (contenttype) msg.contentType = contenttype
  msg.campaign = campaign
  msg.response = response`

const flows = service => [
  tab(), account(service),
  ...action('createResponse', { ...ofCampaign, ...msg('email', 'payload.email'), ...msg('firstName', 'payload.firstName'), ...msg('answers', 'payload.answers') },
    'if (msg.payload.key) msg.idempotencyKey = msg.payload.key'),
  ...action('createResponse', {
    ...ofCampaign, id: 'fromList', email: 'ada@example.com', emailType: 'str', answersFrom: 'list',
    answerList: [
      { name: 'text', value: 'a', type: 'str' }, { name: 'number', value: '7', type: 'num' },
      { name: 'list', value: '["x","y"]', type: 'json' }, { name: 'made', value: '"J" & "SON"', type: 'jsonata' },
      { name: 'absent', value: 'payload.absent', type: 'msg' },
    ],
  }),
  ...action('updateStatus', { ...ofResponse, ...msg('newStatus', 'payload.status') }),
  ...action('addComment', { ...ofResponse, ...msg('comment', 'payload.text') }),
  ...action('uploadFile', {
    ...msg('campaign', 'campaign'), ...msg('response', 'response'), ...msg('file', 'payload'), ...msg('fileName', 'filename'),
    ...msg('contentType', 'contentType'), module: 'letter', moduleType: 'str',
  }, upload),
  ...action('downloadFile', msg('fileUuid', 'payload.file')).map(node => (node.id === 'downloadFile-out' ? node : {
    ...node, wires: node.id === 'downloadFile' ? [['name']] : node.wires,
  })),
  {
    id: 'name', z: 'flow', type: 'function', outputs: 1, wires: [['downloadFile-out']],
    func: 'msg.headers = {"content-type": "application/octet-stream", name: encodeURIComponent(msg.filename), type: msg.contentType}; return msg',
  },
  ...action('getCampaign', ofCampaign),
  ...action('getResponse', ofResponse),
  ...action('listCampaigns', { ...msg('search', 'payload.search'), ...msg('limit', 'payload.limit') }),
  ...action('listResponses', { ...ofCampaign, ...msg('statusFilter', 'payload.status'), ...msg('emailFilter', 'payload.email'), ...msg('limit', 'payload.limit') }),
  ...action('listFiles', ofResponse),
  // Two equal comments from one message, and one that a Catch node sends round again.
  ...action('addComment', { ...ofResponse, ...msg('comment', 'payload.text'), id: 'twice' },
    'delete msg.req; const {res, ...rest} = msg; return [[{...rest}, msg]]'),
  ...action('addComment', { ...ofResponse, ...msg('comment', 'payload.text'), id: 'again' })
    .map(node => (node.id === 'again-catch' ? { ...node, wires: [['again']] } : node)),
]

// Most of the time is waiting, so both databases take their turn at once.
describe('actions', { concurrency: true }, () => {
  for (const database of databases()) describe(database.name, { concurrency: false }, () => {
    let service, nodeRed, relay, campaign, response, ids

    before(async () => {
      [service, nodeRed] = await startBoth(database)
      relay = await startRelay(() => service.url)
      await nodeRed.deploy(flows({ url: relay.url, key: service.key }))
      campaign = await service.campaign('Guest book')
    })

    after(() => Promise.all([service?.stop(), nodeRed?.stop(), relay?.stop()]))

    beforeEach(async () => {
      relay.meddle = null
      relay.requests.length = 0
      response = await service.response(campaign)
      ids = { campaign: campaign.uuid, response: response.uuid }
    })

    const at = () => `/v1/campaigns/${campaign.uuid}/responses/${response.uuid}`
    const comments = async () => (await service.get(`${at()}/comments`)).items.map(({ body }) => body)

    async function done(operation, body, headers) {
      const answer = await nodeRed.post(`/${operation}`, body, headers)
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      return answer.body
    }

    async function fails(operation, body) {
      const answer = await nodeRed.post(`/${operation}`, body)
      assert.equal(answer.status, 500, JSON.stringify(answer.body))
      return answer.body
    }

    test('create a response from an object', async () => {
      const answers = { note: 'Grüße, 世界', several: ['a', 'b'], own: { value: ['c'] } }
      const made = await done('createResponse', { ...ids, email: 'bob@example.com', firstName: 'Bob', answers })
      const read = await service.get(`/v1/campaigns/${campaign.uuid}/responses/${made.uuid}`)
      assert.deepEqual(made, read)
      assert.deepEqual(read.user, { email: 'bob@example.com', firstName: 'Bob', lastName: '' })
      assert.deepEqual(read.responses, { note: { value: ['Grüße, 世界'] }, several: { value: ['a', 'b'] }, own: { value: ['c'] } })
    })

    test('create a response from a list', async () => {
      const { responses } = await done('fromList', ids)
      assert.deepEqual(responses, { text: { value: ['a'] }, number: { value: ['7'] }, list: { value: ['x', 'y'] }, made: { value: ['JSON'] } })
    })

    test('update the status', async () => {
      assert.equal((await done('updateStatus', { ...ids, status: 'validated' })).status, 'validated')
      assert.equal((await service.get(at())).status, 'validated')
    })

    test('add a comment', async () => {
      assert.equal((await done('addComment', { ...ids, text: 'Très bien' })).body, 'Très bien')
      assert.deepEqual(await comments(), ['Très bien'])
    })

    for (const [what, size] of [['an empty file', 0], ['a large file', 5_000_003]]) {
      test(`upload and download ${what}`, async () => {
        // http in makes text of bytes that could be; these cannot.
        const bytes = Buffer.concat([Buffer.from(size ? [0, 255, 0] : []), randomBytes(size)])
        const name = 'reçu n° 1.pdf'
        const headers = { 'content-type': 'application/octet-stream', filename: encodeURIComponent(name), contenttype: 'application/pdf', ...ids }
        const file = await done('uploadFile', bytes, headers)
        assert.equal(file.name, name)
        assert.equal(file.module, 'letter')
        assert.equal(file.contentType, 'application/pdf')
        const stored = await service.request('GET', `/v1/files/${file.uuid}`)
        assert.ok(bytes.equals(stored.body), 'the service has the bytes')
        const got = await nodeRed.post('/downloadFile', { file: file.uuid })
        assert.ok(bytes.equals(got.body), 'the flow gets the bytes')
        assert.equal(decodeURIComponent(got.headers.get('name')), name)
        assert.equal(got.headers.get('type'), 'application/pdf')
        assert.deepEqual((await done('listFiles', ids)).map(({ uuid }) => uuid), [file.uuid])
      })
    }

    test('get and list', async () => {
      assert.equal((await done('getCampaign', ids)).title, 'Guest book')
      assert.deepEqual(await done('getResponse', ids), await service.get(at()))
      const other = await service.campaign(`Needle ${randomBytes(4).toString('hex')}`)
      assert.deepEqual((await done('listCampaigns', { search: 'NEEDLE' })).map(({ uuid }) => uuid), [other.uuid])
      const made = []
      for (let i = 0; i < 3; i++) made.unshift((await service.response(other)).uuid)
      await service.request('PATCH', `/v1/campaigns/${other.uuid}/responses/${made[1]}`, { body: { status: 'validated' } })
      const list = async more => (await done('listResponses', { campaign: other.uuid, ...more })).map(({ uuid }) => uuid)
      assert.deepEqual(await list(), made)
      assert.deepEqual(await list({ limit: 2 }), made.slice(0, 2))
      assert.deepEqual(await list({ status: 'validated' }), [made[1]])
      assert.deepEqual(await list({ email: 'nobody@example.com' }), [])
      // A page has at most what the service gives; the rest is behind its cursor.
      relay.meddle = (request, forward) => {
        request.path = request.path.replace(/limit=\d+/, 'limit=1')
        return forward()
      }
      assert.deepEqual(await list({ limit: 3 }), made)
    })

    test('a response without an address', async () => {
      const anonymous = await service.campaign('Anonymous', { requireEmail: false })
      const made = await done('createResponse', { campaign: anonymous.uuid, answers: { a: 'x' } })
      assert.equal(made.user.email, '')
    })

    test('what the service refuses reaches Catch nodes in its words', async () => {
      const strict = await service.campaign('Strict', {
        modules: [{ name: 'age', label: 'Age', type: 'number', required: true }, { name: 'colour', label: 'Colour', type: 'choice', options: ['red'] }],
      })
      const refused = await service.request('POST', `/v1/campaigns/${strict.uuid}/responses`,
        { body: { user: { email: 'x' }, responses: { colour: { value: ['blue'] } } }, status: 422 })
      const { error, problem } = await fails('createResponse', { campaign: strict.uuid, email: 'x', answers: { colour: 'blue' } })
      const { requestId, ...rest } = problem
      assert.deepEqual({ ...rest, requestId: refused.body.requestId }, refused.body)
      assert.ok(problem.errors.length >= 3)
      for (const part of [problem.title, problem.detail, requestId, ...problem.errors.flatMap(({ pointer, detail }) => [pointer, detail])]) {
        assert.ok(error.message.includes(part), `${part} is not in: ${error.message}`)
      }
      assert.equal(error.source.id, 'createResponse')
      assert.equal(error.code, problem.code)
    })

    test('what cannot be sent is not', async () => {
      assert.match((await fails('addComment', { campaign: campaign.uuid, text: 'x' })).error.message, /Response is missing/)
      assert.match((await fails('getCampaign', { campaign: '../webhooks' })).error.message, /Campaign is not a UUID/)
      assert.match((await fails('createResponse', { ...ids, email: 'a@example.com', answers: { a: { b: 1 } } })).error.message, /"a" must be text/)
      assert.match((await fails('createResponse', { ...ids, email: 'a@example.com', key: 'a b' })).error.message, /idempotencyKey/)
      assert.equal(relay.requests.length, 0)
    })

    test('a comment whose answer got lost is there once', async () => {
      let lost = 0
      relay.meddle = async (request, forward) => {
        const answer = await forward()
        return lost++ < 2 ? null : answer
      }
      await done('addComment', { ...ids, text: 'once' })
      assert.equal(relay.requests.length, 3)
      assert.deepEqual(await comments(), ['once'])
    })

    test('a message that a Catch node sends round again is there once', async () => {
      // The service did it, and the answer says that nobody knows.
      let failures = 0
      relay.meddle = async (request, forward) => {
        const answer = await forward()
        return failures++ < 3 ? { status: 500, headers: {}, body: '' } : answer
      }
      await done('again', { ...ids, text: 'again' })
      assert.equal(relay.requests.length, 4)
      assert.deepEqual(await comments(), ['again'])
    })

    test('two equal comments are two', async () => {
      await done('twice', { ...ids, text: 'twice' })
      await eventually('both are there', async () => (await comments()).length === 2)
      const keys = relay.requests.map(({ headers }) => headers['idempotency-key'])
      assert.equal(new Set(keys).size, 2)
    })

    test('a key of one\'s own', async () => {
      const body = { ...ids, email: 'once@example.com', key: `order-${response.reference}` }
      const first = await done('createResponse', body)
      assert.deepEqual(await done('createResponse', body), first)
      assert.equal(relay.requests[0].headers['idempotency-key'], body.key)
    })

    test('quota and unavailability are waited for, but not for ever', async () => {
      const busy = (status, wait) => ({
        status, headers: { 'content-type': 'application/problem+json', 'retry-after': wait },
        body: JSON.stringify({ title: 'Busy', detail: 'Come back later.', status, code: 'busy', requestId: 'r1' }),
      })
      const answers = [busy(429, 1), busy(503, 0)]
      relay.meddle = (request, forward) => answers.shift() ?? forward()
      await done('addComment', { ...ids, text: 'patient' })
      assert.deepEqual(await comments(), ['patient'])
      relay.requests.length = 0
      relay.meddle = () => busy(429, 3000)
      const { error } = await fails('addComment', { ...ids, text: 'too long' })
      assert.match(error.message, /Busy: Come back later\.\nTry again after 3000 seconds\./)
      assert.equal(relay.requests.length, 1)
    })

    test('a redirect does not carry the key away', async () => {
      relay.meddle = () => ({ status: 301, headers: { location: 'http://127.0.0.1:9/' }, body: '' })
      assert.match((await fails('getCampaign', ids)).error.message, /answered 301 and points to http:\/\/127\.0\.0\.1:9/)
      relay.meddle = () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: '<p>' })
      assert.match((await fails('getCampaign', ids)).error.message, /Check the base URL/)
    })

    test('the editor\'s questions', async () => {
      const stored = { id: 'account', baseUrl: relay.url }
      const ask = async (what, body) => nodeRed.admin('POST', `/formsvc/${what}`, body)
      const me = (await ask('test', stored)).body
      assert.equal(me.account, service.account)
      assert.ok(me.permissions.includes('webhooks:write'))
      const found = (await ask('campaigns', { ...stored, search: 'guest' })).body
      assert.ok(found.items.some(({ uuid, title }) => uuid === campaign.uuid && title === 'Guest book'))
      assert.equal((await ask('campaign', { ...stored, campaign: campaign.uuid })).body.title, 'Guest book')
      assert.equal((await ask('test', { baseUrl: service.url, apiKey: service.key })).body.account, service.account)
      const wrong = await ask('test', { baseUrl: service.url, apiKey: 'wrong' })
      assert.equal(wrong.status, 502)
      assert.match(wrong.body.message, /^Unauthorized: /)
      // The stored key goes nowhere else.
      const elsewhere = await ask('test', { id: 'account', baseUrl: service.url })
      assert.match(elsewhere.body.message, /base URL has changed/)
    })

    test('a wrong key, and a key that may not', async () => {
      const reader = await service.newKey('campaigns:read')
      const keyed = (id, key) => ({ id, type: 'formsvc-account', baseUrl: service.url, credentials: { apiKey: key } })
      await nodeRed.deploy([tab(), keyed('wrong', 'wrong'), keyed('reader', reader),
        ...action('getCampaign', { ...ofCampaign, account: 'wrong' }),
        ...action('addComment', { ...ofResponse, ...msg('comment', 'payload.text'), account: 'reader' })])
      const unknown = await fails('getCampaign', ids)
      assert.equal(unknown.problem.status, 401)
      assert.ok(unknown.error.message.startsWith(`Unauthorized: ${unknown.problem.detail}`))
      const denied = await fails('addComment', { ...ids, text: 'x' })
      assert.equal(denied.problem.permission, 'responses:write')
      assert.match(denied.error.message, /responses:write/)
    })
  })
})
