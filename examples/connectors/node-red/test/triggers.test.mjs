// The trigger: every event, and what is refused.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { databases, eventually } from '../../testing/service.mjs'
import { account, pass, startBoth, startRelay, tab, trigger } from './nodered.mjs'

const ALL = ['response.created', 'response.updated', 'response.status_changed', 'response.completed', 'signature.completed', 'file.uploaded']

// Most of the time is waiting, so both databases take their turn at once.
describe('trigger', { concurrency: true }, () => {
  for (const database of databases()) describe(database.name, { concurrency: false }, () => {
    let service, nodeRed, api, deliveries, campaign

    before(async () => {
      [service, nodeRed] = await startBoth(database)
      // What the node tells the service, and what the service sends to it.
      api = await startRelay(() => service.url)
      deliveries = await startRelay(() => nodeRed.publicUrl)
      campaign = await service.campaign('Guest book')
      await nodeRed.deploy([tab(), account(service, { baseUrl: api.url }),
        trigger(nodeRed, { events: ALL, publicUrl: deliveries.url }), ...nodeRed.record('record')])
      await eventually('the trigger subscribes', async () => (await service.webhooks()).length === 1)
    })

    after(async () => {
      await Promise.all([service?.stop(), nodeRed?.stop(), api?.stop(), deliveries?.stop()])
    })

    // Returns the messages about a response when there are as many as wanted.
    const messagesOf = ({ uuid }, wanted = 1) => eventually(`${wanted} messages`, async () => {
      const ofIt = (await nodeRed.messages()).filter(({ payload }) => payload.data.response.uuid === uuid)
      return ofIt.length >= wanted && ofIt
    })
    const secret = () => JSON.parse(api.requests.findLast(({ method, path }) => /^(POST|PUT)$/.test(method) && /^\/v1\/webhooks(\/[^/]+)?$/.test(path)).body).secret

    // Signs a delivery anew, as of a number of seconds ago.
    function sign({ headers, body, ...rest }, ago = 0, by = secret()) {
      const at = Math.floor(Date.now() / 1000) - ago
      const key = Buffer.from(by.replace('whsec_', ''), 'base64')
      const signature = createHmac('sha256', key).update(`${headers['webhook-id']}.${at}.`).update(body).digest('base64')
      return {
        ...rest, body,
        headers: { ...headers, 'content-length': body.length, 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` },
      }
    }

    // Returns a delivery that made a message.
    async function delivery() {
      const [message] = await messagesOf(await service.response(campaign))
      return deliveries.requests.find(({ headers }) => headers['webhook-id'] === message._msgid)
    }

    // Tells how many messages an event made. A good event after it shows that there would be more by now.
    async function count(id) {
      await messagesOf(await service.response(campaign))
      return (await nodeRed.messages()).filter(({ _msgid }) => _msgid === id).length
    }

    test('all six events', async () => {
      const at = `/v1/campaigns/${campaign.uuid}/responses`
      const response = await service.response(campaign)
      const change = body => service.request('PATCH', `${at}/${response.uuid}`, { body })
      await change({ responses: { note: { value: ['changed'] } } })
      await change({ status: 'completed' })
      await service.request('POST', `${at}/${response.uuid}/files`, {
        body: Buffer.from('x'), headers: { 'content-type': 'text/plain', 'content-disposition': 'attachment; filename="x.txt"' },
      })
      await service.post(`${at}/${response.uuid}/signatures`, { signer: { email: 'ada@example.com' } })
      const got = await messagesOf(response, ALL.length)
      assert.deepEqual(got.map(({ topic }) => topic).sort(), [...ALL].sort())
      for (const message of got) {
        assert.equal(message.payload.event, message.topic)
        assert.deepEqual(message.event, message.payload)
        assert.equal(message._msgid, message.payload.id)
        assert.equal(message.payload.data.response.uuid, response.uuid)
        assert.equal(message.payload.data.campaign.title, 'Guest book')
      }
      const by = Object.fromEntries(got.map(({ topic, payload }) => [topic, payload.data]))
      assert.deepEqual(by['response.created'].response.responses, response.responses)
      assert.equal(by['response.status_changed'].previousStatus, 'pending')
      assert.equal(by['file.uploaded'].file.name, 'x.txt')
      assert.equal(by['signature.completed'].signature.signer.email, 'ada@example.com')
    })

    test('a test event', async () => {
      const [{ uuid }] = await service.webhooks()
      await service.request('POST', `/v1/webhooks/${uuid}/test`)
      await eventually('the test event', async () => (await nodeRed.messages()).some(({ payload }) => payload.test === true))
    })

    test('an event that comes twice is one message', async () => {
      const first = await delivery()
      for (const again of [first, sign(first)]) {
        assert.equal((await pass(nodeRed.publicUrl, again)).status, 200)
      }
      assert.equal(await count(first.headers['webhook-id']), 1)
    })

    test('what is not signed with the secret of the subscription is refused', async () => {
      const good = await delivery()
      const other = JSON.parse(good.body)
      other.id = 'another'
      const altered = Buffer.from(JSON.stringify(other))
      const without = name => ({ ...good, headers: Object.fromEntries(Object.entries(good.headers).filter(([key]) => key !== name)) })
      const fresh = { ...good, headers: { ...good.headers, 'webhook-id': 'another' }, body: altered }
      const refused = {
        'another body': { ...good, headers: { ...good.headers, 'content-length': altered.length }, body: altered },
        'another secret': sign(fresh, 0, 'whsec_AAAA'),
        'too old': sign(fresh, 301),
        'from the future': sign(fresh, -302),
        'no signature': without('webhook-signature'),
        'no time': without('webhook-timestamp'),
        'no id': without('webhook-id'),
      }
      for (const [what, request] of Object.entries(refused)) {
        assert.equal((await pass(nodeRed.publicUrl, request)).status, 401, what)
      }
      const bad = Buffer.from('{"id":')
      assert.equal((await pass(nodeRed.publicUrl, sign({ ...fresh, body: bad }))).status, 400, 'no JSON')
      assert.equal((await pass(nodeRed.publicUrl, sign({ ...fresh, body: Buffer.from('null') }))).status, 400, 'no event')
      assert.equal((await pass(nodeRed.publicUrl, sign({ ...fresh, body: Buffer.alloc(3_000_000, ' ') }))).status, 413, 'too much')
      assert.equal((await pass(nodeRed.publicUrl, { ...good, method: 'GET', body: undefined })).status, 405)
      assert.match(nodeRed.output, /A request was refused: webhook-signature is wrong/)
      assert.equal(await count('another'), 0)
      assert.equal((await pass(nodeRed.publicUrl, sign(fresh))).status, 200, 'the same with a good signature')
      assert.equal(await count('another'), 1)
    })

    test('a delivery that failed is sent again', async () => {
      let failures = 0
      // Not the node's own test event, for which it may just have asked again.
      deliveries.meddle = (request, forward) => (!JSON.parse(request.body).test && failures++ < 2 ? null : forward())
      await messagesOf(await service.response(campaign))
      deliveries.meddle = null
    })

    test('the largest events arrive', async () => {
      const value = ['ü'.repeat(400_000)]
      const [message] = await messagesOf(await service.response(campaign, { note: { value } }))
      assert.ok(message.payload.data.response.responses.note.value[0] === value[0])
    })

    test('only events of the chosen campaign', async () => {
      const other = await service.campaign('Other')
      await nodeRed.deploy([tab(), account(service, { baseUrl: api.url, credentials: undefined }),
        trigger(nodeRed, { events: ['response.created'], campaign: other.uuid, publicUrl: deliveries.url }), ...nodeRed.record('record')], 'nodes')
      await eventually('the subscription changes', async () => (await service.webhooks())[0].campaignUuid === other.uuid)
      assert.deepEqual((await service.webhooks()).map(({ events }) => events), [['response.created']])
      const unwanted = await service.response(campaign)
      await messagesOf(await service.response(other))
      assert.ok((await nodeRed.messages()).every(({ payload }) => payload.data.response.uuid !== unwanted.uuid))
    })

    test('a wrong key shows', async () => {
      const wrong = { id: 'wrong', type: 'formsvc-account', baseUrl: service.url, credentials: { apiKey: 'wrong' } }
      await nodeRed.deploy([tab(), wrong, trigger(nodeRed, { account: 'wrong' })])
      await eventually('the error is logged', () => /\[formsvc-in:trigger\] Unauthorized: /.test(nodeRed.output))
    })
  })
})
