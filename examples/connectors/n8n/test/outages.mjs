// What happens when n8n, the service or the network between them fails in the middle.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'

import { databases, eventually, startService } from '../../testing/service.mjs'
import { Actions, byId } from './act.mjs'
import { startProxy } from './proxy.mjs'
import { n8n } from './shared.mjs'
import { makeTrigger } from './subscriber.mjs'

// n8n tries a failed step again.
const retries = { retryOnFail: true, maxTries: 5, waitBetweenTries: 1000 }

for (const database of databases()) {
  describe(`outages, on ${database.name}`, () => {
    let service, proxy, actions, credentials
    before(async () => {
      // Often enough that n8n is back before the last attempt.
      service = await startService(database, '--webhook-retries', Array(60).fill('1s').join())
      proxy = await startProxy(service)
      credentials = await n8n.credential(service)
      actions = new Actions(n8n, await n8n.credential({ url: proxy.url, key: service.key }))
    })
    after(async () => {
      await proxy?.stop()
      await service?.stop()
    })

    const creation = (campaign, more) => ({
      resource: 'response', operation: 'create', campaign: byId(campaign.uuid), email: 'ada@example.com',
      answersFrom: 'json', answersJson: '={{ { note: $json.note } }}', ...more,
    })
    const notes = async campaign => (await service.get(`/v1/campaigns/${campaign.uuid}/responses?order=asc`)).items
      .map(({ responses }) => responses.note.value[0])

    test('an item whose answer is lost is not submitted twice, and one that is submitted again is', async () => {
      const campaign = await service.campaign()
      const run = await actions.prepare(creation(campaign), retries)
      Object.assign(proxy, { requests: [], pass: 1, lose: 1 })
      const { items } = await run([{ note: 'a' }, { note: 'b' }, { note: 'b' }])
      assert.equal(items.length, 3)
      assert.deepEqual(await notes(campaign), ['a', 'b', 'b'])
      // "a" twice, "b" twice, the second "b": the whole step was tried again, with the keys it had.
      const keys = proxy.posts().map(({ key }) => key)
      assert.deepEqual([keys[2], keys[3]], [keys[0], keys[1]])
      assert.equal(new Set(keys).size, 3)
      assert.deepEqual(proxy.posts().map(({ replayed }) => replayed === 'true'), [false, false, true, true, false])

      await run([{ note: 'a' }])
      assert.deepEqual(await notes(campaign), ['a', 'b', 'b', 'a'])
    })

    test('a key of one\'s own holds across executions', async () => {
      const campaign = await service.campaign()
      const run = await actions.prepare(creation(campaign, { createOptions: { idempotencyKey: '=order-{{ $json.order }}' } }))
      const first = await run([{ note: 'x', order: 1 }])
      const second = await run([{ note: 'x', order: 1 }])
      assert.equal(first.items[0].uuid, second.items[0].uuid)
      assert.deepEqual(await notes(campaign), ['x'])
      const { error } = await run([{ note: 'another', order: 1 }])
      assert.match(error.description, /idempotency_mismatch/)
    })

    test('comments and files are not added twice either', async () => {
      const made = await service.response(await service.campaign())
      const path = `/v1/campaigns/${made.campaignUuid}/responses/${made.uuid}`
      const on = { campaign: byId(made.campaignUuid), responseUuid: made.uuid }
      const comment = await actions.prepare({ resource: 'response', operation: 'addComment', comment: 'once', ...on }, retries)
      Object.assign(proxy, { requests: [], pass: 0, lose: 1 })
      await comment([{}])
      assert.equal(proxy.posts().length, 2)
      assert.equal((await service.get(`${path}/comments`)).items.length, 1)

      const upload = await actions.prepareUpload({ resource: 'file', operation: 'upload', binaryProperty: 'data', ...on }, retries)
      Object.assign(proxy, { requests: [], pass: 0, lose: 1 })
      const bytes = randomBytes(3_000_000)
      const { items: [file] } = await upload({ name: 'reçu n° 1.pdf', type: 'application/pdf', bytes })
      assert.equal(proxy.posts().length, 2)
      const files = (await service.get(`${path}/files`)).items
      assert.deepEqual(files.map(({ uuid }) => uuid), [file.uuid])
      assert.ok(bytes.equals((await service.request('GET', `/v1/files/${file.uuid}`)).body))
    })

    test('a step that finds no service succeeds when it is back', async () => {
      const campaign = await service.campaign()
      const run = await actions.prepare(creation(campaign), retries)
      await run([{ note: 'before' }])
      await service.end('SIGKILL')
      const [{ items }] = await Promise.all([run([{ note: 'meanwhile' }]), service.start()])
      assert.equal(items.length, 1)
      assert.deepEqual(await notes(campaign), ['before', 'meanwhile'])
    })

    test('what is to be delivered when the service is restarted arrives once', async () => {
      const campaign = await service.campaign()
      const subscriber = await makeTrigger(n8n, service, credentials, ['response.created'], campaign)
      const webhook = await subscriber.activate()
      const made = []
      for (let i = 0; i < 10; i++) made.push((await service.response(campaign)).uuid)
      await service.restart()
      for (let i = 0; i < 10; i++) made.push((await service.response(campaign)).uuid)
      await eventually('everything is delivered', async () => {
        const { items } = await service.get(`/v1/webhooks/${webhook.uuid}/deliveries`)
        return items.length === 20 && items.every(({ state }) => state === 'delivered')
      })
      const arrived = (await subscriber.started(20)).map(({ data }) => data.response.uuid)
      assert.deepEqual(arrived.sort(), made.sort())
      await subscriber.deactivate()
    })

    test('a workflow goes on with its subscription after n8n was killed, and misses nothing', async () => {
      const campaign = await service.campaign()
      const subscriber = await makeTrigger(n8n, service, credentials, ['response.created'], campaign)
      const webhook = await subscriber.activate()
      const before = await service.response(campaign)
      await subscriber.started(1)
      await n8n.end('SIGKILL')
      const meanwhile = await service.response(campaign)
      await eventually('a delivery has failed', async () =>
        (await service.get(`/v1/webhooks/${webhook.uuid}/deliveries`)).items.some(({ attempts, attemptCount }) =>
          attemptCount > 0 && attempts?.every(({ status }) => status !== 200)))
      await n8n.start()
      await subscriber.started(2, 600_000) // how soon the service tries again depends on how often it failed while n8n started
      const afterwards = await service.response(campaign)
      const arrived = (await subscriber.started(3)).map(({ data }) => data.response.uuid)
      assert.deepEqual(arrived, [before, meanwhile, afterwards].map(({ uuid }) => uuid))
      assert.deepEqual((await service.webhooks()).map(({ uuid }) => uuid), [webhook.uuid])
      await subscriber.deactivate()
      assert.deepEqual(await service.webhooks(), [])
    })
  })
}

describe('a quota', () => {
  let service
  before(async () => { service = await startService(undefined, '--quota', '5', '--quota-window', '2s') })
  after(() => service?.stop())

  test('that is used up is waited for', async () => {
    const made = await service.post('/v1/campaigns', { title: 'Few requests' })
    const actions = new Actions(n8n, await n8n.credential(service))
    const run = await actions.prepare({
      resource: 'response', operation: 'create', campaign: byId(made.uuid), email: 'ada@example.com', answersFrom: 'json', answersJson: '{}',
    })
    const { items, error } = await run(Array.from({ length: 12 }, () => ({})))
    assert.equal(error, undefined)
    assert.equal(new Set(items.map(({ uuid }) => uuid)).size, 12)
  })
})
