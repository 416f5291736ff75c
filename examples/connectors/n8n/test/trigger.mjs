// What the trigger node does, in a real n8n and with the real service.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'

import { databases, eventually, startService } from '../../testing/service.mjs'
import { n8n } from './shared.mjs'
import { makeTrigger, signature } from './subscriber.mjs'

const six = [
  'response.created', 'response.updated', 'response.status_changed', 'response.completed', 'signature.completed', 'file.uploaded',
]

for (const database of databases()) {
  describe(`trigger, on ${database.name}`, () => {
    let service, credentials
    before(async () => {
      service = await startService(database)
      credentials = await n8n.credential(service)
    })
    after(() => service?.stop())

    const trigger = (events, campaign) => makeTrigger(n8n, service, credentials, events, campaign)

    // Makes each of the six events happen once (status_changed twice).
    async function live(campaign) {
      const made = await service.response(campaign)
      const path = `/v1/campaigns/${campaign.uuid}/responses/${made.uuid}`
      await service.request('PATCH', path, { body: { responses: { note: { value: ['changed'] } } } })
      await service.request('PATCH', path, { body: { status: 'validated' } })
      await service.request('PATCH', path, { body: { status: 'completed' } })
      await service.post(`${path}/signatures`, { signer: { email: 'ada@example.com' } })
      const form = new FormData()
      form.append('file', new Blob([randomBytes(1000)]), 'reçu n° 1.pdf')
      await service.request('POST', `${path}/files`, { body: form })
    }

    test('each of the six events starts its workflow, with what the service sent', async () => {
      const campaign = await service.campaign('The one')
      const other = await service.campaign('Another one')
      const triggers = await Promise.all(six.map(event => trigger([event], campaign)))
      const all = await trigger(six)
      for (const each of [...triggers, all]) await each.activate()
      await live(other)
      await live(campaign)
      const { items } = await service.get('/v1/events?limit=100')
      const byEvent = event => items.filter(item => item.event === event && item.data.campaign.uuid === campaign.uuid)
      for (const [i, each] of triggers.entries()) {
        const wanted = byEvent(six[i])
        assert.equal(wanted.length, six[i] === 'response.status_changed' ? 2 : 1)
        await each.started(wanted.length)
      }
      assert.equal((await all.started(14)).length, 14)
      for (const [i, each] of triggers.entries()) {
        const started = await each.events()
        assert.deepEqual(started.sort((a, b) => (a.id < b.id ? -1 : 1)), byEvent(six[i]))
      }
      for (const each of [...triggers, all]) await each.deactivate()
      assert.deepEqual(await service.webhooks(), [])
    })

    test('a delivery that is not signed, altered or old is refused, and starts nothing', async () => {
      const subscriber = await trigger(['response.created'])
      await subscriber.activate()
      const event = () => ({ id: randomUUID(), event: 'response.created', timestamp: new Date().toISOString(), data: {} })
      const now = Date.now()
      const refused = [
        ['webhook-signature does not fit', { secret: `whsec_${randomBytes(32).toString('base64')}` }],
        ['webhook-signature does not fit', { sign: event() }],
        ['webhook-signature does not fit', { 'webhook-id': 'another' }],
        ['webhook-signature does not fit', { 'webhook-timestamp': String(Math.floor(now / 1000) - 1) }],
        ['webhook-signature does not fit', { 'webhook-signature': '' }],
        ['webhook-timestamp is more than five minutes off', { now: now - 6 * 60_000 }],
        ['webhook-timestamp is more than five minutes off', { now: now + 6 * 60_000 }],
        ['webhook-id or webhook-timestamp is malformed', { 'webhook-timestamp': '1e9' }],
        ['webhook-id or webhook-timestamp is malformed', { 'webhook-id': 'a.b' }],
      ]
      for (const [reason, how] of refused) {
        assert.deepEqual(await subscriber.deliver(event(), how), { status: 401, text: JSON.stringify({ message: reason }) })
      }
      const bare = await fetch(subscriber.url, { method: 'POST', body: JSON.stringify(event()), headers: { 'content-type': 'application/json' } })
      assert.equal(bare.status, 401)
      assert.equal((await subscriber.deliver({ no: 'event' })).status, 400)
      assert.ok((await subscriber.deliver('{"id": "cut of')).status >= 400)

      const good = event()
      assert.deepEqual(await subscriber.deliver(good), { status: 200, text: 'received' })
      assert.deepEqual(await subscriber.started(1), [good])
      await subscriber.deactivate()
    })

    test('a delivery is refused while no secret is remembered', async () => {
      const subscriber = await trigger(['response.created'])
      await subscriber.activate()
      const { secret } = await subscriber.remembered()
      // n8n does so itself where a workflow's data is lost, but offers no way to do it on purpose.
      await n8n.forget(subscriber.id)
      const { status, text } = await subscriber.deliver({ id: randomUUID(), event: 'response.created' }, { secret })
      assert.equal(status, 401)
      assert.match(text, /knows no secret/)
      assert.deepEqual(await subscriber.events(), [])
      // It is not mistaken for a subscription later; and what has its address is found without its UUID.
      await n8n.deactivate(subscriber.id)
      await eventually('the webhook is gone', async () => (await subscriber.webhooks()).length === 0)
    })

    test('an event that is delivered twice starts the workflow once', async () => {
      const subscriber = await trigger(['response.created'])
      const webhook = await subscriber.activate()
      const campaign = await service.campaign()
      await service.response(campaign)
      await subscriber.started(1)
      const { items: [delivery] } = await service.get(`/v1/webhooks/${webhook.uuid}/deliveries`)
      await service.post(`/v1/deliveries/${delivery.uuid}/redeliver`)
      const again = await eventually('it is delivered again', async () => {
        const { attempts } = await service.get(`/v1/deliveries/${delivery.uuid}`)
        return attempts.length === 2 && attempts
      })
      assert.deepEqual(again.map(({ status, statusCode }) => status ?? statusCode), [200, 200])
      // The next one shows that nothing was under way.
      const second = await service.response(campaign)
      const events = await subscriber.started(2)
      assert.equal(events.length, 2)
      assert.equal(events[1].data.response.uuid, second.uuid)
      await subscriber.deactivate()
    })

    test('while a secret is being replaced, one of several signatures is enough', async () => {
      const subscriber = await trigger(['response.created'])
      const webhook = await subscriber.activate()
      await service.post(`/v1/webhooks/${webhook.uuid}/rotate`)
      const made = await service.response(await service.campaign())
      assert.equal((await subscriber.started(1))[0].data.response.uuid, made.uuid)
      const event = { id: randomUUID(), event: 'response.created' }
      const timestamp = String(Math.floor(Date.now() / 1000))
      const { secret } = await subscriber.remembered()
      const fits = signature(secret, 'msg', timestamp, JSON.stringify(event))
      const answer = await subscriber.deliver(event, {
        'webhook-timestamp': timestamp, 'webhook-signature': `v1,AAAA v2,BBBB ${fits}`,
      })
      assert.equal(answer.status, 200)
      await subscriber.deactivate()
    })

    test('by default the response of an event is simplified', async () => {
      const subscriber = await makeTrigger(n8n, service, credentials, ['response.created'], undefined, {})
      await subscriber.activate()
      const made = await service.response(await service.campaign(), { a: { value: ['x'] }, b: { value: ['y', 'z'] } })
      const [{ data: { response } }] = await subscriber.started(1)
      const { responses, ...rest } = made
      assert.deepEqual(response, { ...rest, answers: { a: 'x', b: ['y', 'z'] } })
      await subscriber.deactivate()
    })

    test('a test event is marked as one', async () => {
      const subscriber = await trigger(['signature.completed'])
      const webhook = await subscriber.activate()
      await service.post(`/v1/webhooks/${webhook.uuid}/test`)
      const [event] = await subscriber.started(1)
      assert.deepEqual([event.event, event.test], ['signature.completed', true])
      await subscriber.deactivate()
    })

    test('orphans with the address of a workflow are taken over, without duplicates', async () => {
      const campaign = await service.campaign()
      const subscriber = await trigger(['response.created'], campaign)
      const old = [
        await service.post('/v1/webhooks', { url: subscriber.url, events: ['file.uploaded'] }),
        await service.post('/v1/webhooks', { url: subscriber.url, events: ['response.created'], campaignUuid: campaign.uuid }),
      ]
      const stranger = await service.post('/v1/webhooks', { url: `${subscriber.url}/not`, events: ['file.uploaded'] })
      const { uuid } = await subscriber.activate()
      const webhooks = await eventually('one is left', async () => {
        const found = await subscriber.webhooks()
        return found.length === 1 && found
      })
      assert.ok(old.some(webhook => webhook.uuid === uuid))
      assert.deepEqual([webhooks[0].events, webhooks[0].campaignUuid], [['response.created'], campaign.uuid])
      await service.response(campaign)
      await subscriber.started(1)
      await subscriber.deactivate()
      assert.deepEqual((await service.webhooks()).map(webhook => webhook.uuid), [stranger.uuid])
      await service.request('DELETE', `/v1/webhooks/${stranger.uuid}`)
    })

    test('a workflow can always be switched off, and on again', async () => {
      const campaign = await service.campaign()
      const subscriber = await trigger(['response.created'], campaign)
      const { uuid } = await subscriber.activate()
      await service.request('DELETE', `/v1/webhooks/${uuid}`)
      await subscriber.deactivate()

      const second = await subscriber.activate()
      assert.notEqual(second.uuid, uuid)
      await service.end()
      await n8n.deactivate(subscriber.id)
      await eventually('the log tells', () => n8n.log.includes(`The webhook ${second.uuid} of "node 0" could not be deleted`))
      await service.start()
      assert.equal((await subscriber.webhooks()).length, 1)

      // What could not be deleted is taken up again, also when somebody has disabled it.
      await service.request('PUT', `/v1/webhooks/${second.uuid}`, {
        body: { url: subscriber.url, events: ['response.created'], campaignUuid: campaign.uuid, disabled: true },
      })
      await n8n.activate(subscriber.id)
      await eventually('the webhook is enabled', async () => (await subscriber.webhooks())[0].disabled === false)
      assert.deepEqual((await subscriber.webhooks()).map(webhook => webhook.uuid), [second.uuid])
      await eventually('the new secret is remembered', async () => {
        await service.response(campaign)
        return (await subscriber.events()).length > 0
      })
      await subscriber.deactivate()
      assert.deepEqual(await service.webhooks(), [])
    })

    test('why a workflow cannot be switched on is told in the service\'s words', async () => {
      const key = await service.newKey('webhooks:read')
      const weak = await n8n.credential({ url: service.url, key })
      const subscriber = await makeTrigger(n8n, service, weak, ['response.created'])
      const { body: problem } = await service.request('POST', '/v1/webhooks', {
        key, status: 403, body: { url: subscriber.url, events: ['response.created'] },
      })
      await n8n.activate(subscriber.id)
      const failure = await n8n.whyNotPublished(subscriber.id)
      assert.ok(failure.includes(problem.detail), failure)
    })
  })
}
