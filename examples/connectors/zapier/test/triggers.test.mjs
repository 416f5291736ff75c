import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { databases } from '../../testing/service.mjs'
import { App, core, failure, message, received, shape, start, zapUrl } from './support.mjs'

// What raises each event; a response of a campaign is there already.
const RAISE = {
  response_created: ({ service, campaign }) => service.response(campaign),
  response_updated: ({ service, path }) => service.request('PATCH', path, { body: { responses: { note: { value: ['other'] } } } }),
  response_status_changed: ({ service, path }) => service.request('PATCH', path, { body: { status: 'validated' } }),
  response_completed: ({ service, path }) => service.request('PATCH', path, { body: { status: 'completed' } }),
  signature_completed: async ({ service, path }) => {
    const { uuid: fileUuid } = await service.post(`${path}/files`, form('signed'))
    return service.post(`${path}/signatures`, { signer: { email: 'ada@example.com' }, provider: 'signing.example', fileUuid })
  },
  file_uploaded: ({ service, path }) => service.post(`${path}/files`, form('content')),
}

function form(content) {
  const data = new FormData()
  data.append('file', new Blob([content], { type: 'application/pdf' }), 'reçu n° 1.pdf')
  return data
}

async function scene({ service }) {
  const campaign = await service.campaign('Guest book')
  const response = await service.response(campaign)
  return { service, campaign, response, path: `/v1/campaigns/${campaign.uuid}/responses/${response.uuid}` }
}

const operation = key => `triggers.${key}.operation`

for (const database of databases()) {
  test(`triggers on ${database.name}`, async t => {
    const { service, run } = await start(t, database)

    for (const [key, raise] of Object.entries(RAISE)) {
      await t.test(key, async t => {
        const zap = await zapUrl(t)
        const here = await scene({ service })
        const other = await scene({ service })
        const inputData = { campaign: here.campaign.uuid }
        const bundle = { inputData, targetUrl: zap.url }
        const { event } = App.triggers[key].operation.sample

        // Before there is any, the editor shows the sample.
        if (key !== 'response_created') {
          assert.deepEqual(await run(`${operation(key)}.performList`, { inputData }), [App.triggers[key].operation.sample])
        }

        const subscribeData = await run(`${operation(key)}.performSubscribe`, bundle)
        const [webhook] = await service.webhooks()
        assert.deepEqual([webhook.uuid, webhook.url, webhook.events, webhook.campaignUuid, webhook.disabled],
          [subscribeData.id, zap.url, [event], here.campaign.uuid, false])
        assert.match(subscribeData.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)

        await service.restart()
        await raise(other)
        await raise(here)
        const delivery = await zap.next()
        const [result, ...rest] = await run(`${operation(key)}.perform`, { ...bundle, subscribeData, ...received(delivery) })
        assert.deepEqual(rest, [])
        const { file, ...envelope } = result
        assert.deepEqual(envelope, JSON.parse(delivery.body))
        assert.equal(envelope.data.campaign.uuid, here.campaign.uuid)
        assert.equal(envelope.event, event)
        assert.equal(delivery.headers['webhook-id'], envelope.id)

        // Zapier shows one of these in the editor, and maps from it what it later finds in a delivery.
        const listed = await run(`${operation(key)}.performList`, { inputData })
        assert.deepEqual(listed[0], result)
        assert.deepEqual(shape(App.triggers[key].operation.sample), shape(result))
        assert.equal(Object.hasOwn(result, 'file'), ['signature_completed', 'file_uploaded'].includes(key))
        if (file) assert.match(file, /^hydrate\|\|\|\{"type":"file","method":"hydrators\.downloadFile"/)

        await run(`${operation(key)}.performUnsubscribe`, { ...bundle, subscribeData })
        assert.deepEqual(await service.webhooks(), [])
      })
    }

    await t.test('samples are the newest three, of the campaign or of all', async () => {
      const { campaign } = await scene({ service })
      const made = []
      for (let number = 0; number < 4; number++) made.unshift((await service.response(campaign)).uuid)
      const listed = async inputData => (await run(`${operation('response_created')}.performList`, { inputData }))
        .map(({ data }) => data.response.uuid)
      assert.deepEqual(await listed({ campaign: campaign.uuid }), made.slice(0, 3))
      const { response } = await scene({ service })
      assert.deepEqual(await listed({}), [response.uuid, ...made.slice(0, 2)])
    })

    await t.test('answers are labelled as their modules', async () => {
      const campaign = await service.campaign('Labels', { modules: [{ name: 'age', label: 'How old are you?' }] })
      const fields = App.triggers.response_created.operation.outputFields
      const labels = fields.filter(field => typeof field === 'function')
      assert.equal(labels.length, 1)
      assert.deepEqual(await run(labels[0], { inputData: { campaign: campaign.uuid } }),
        [{ key: 'data__response__responses__age__value', label: 'How old are you?' }])
      assert.deepEqual(await run(labels[0], { inputData: {} }), [])
    })
  })

  test(`subscriptions on ${database.name}`, async t => {
    const { service, run } = await start(t, database, '--webhook-retries', '100ms,1s,1s')
    const zap = await zapUrl(t)
    const { campaign, path } = await scene({ service })
    const bundle = { inputData: {}, targetUrl: zap.url }
    const subscribe = () => run(`${operation('response_created')}.performSubscribe`, bundle)
    const perform = (subscribeData, delivery) =>
      run(`${operation('response_created')}.perform`, { ...bundle, subscribeData, ...received(delivery) })

    await t.test('the same again is one webhook, with a secret that is known', async () => {
      const first = await subscribe()
      const second = await subscribe()
      assert.equal(second.id, first.id)
      assert.notEqual(second.secret, first.secret)
      assert.equal((await service.webhooks()).length, 1)
      await service.response(campaign)
      assert.equal((await perform(second, await zap.next())).length, 1)
    })

    await t.test('what is left at this URL is taken over, whatever it was for, and no other', async () => {
      const [left] = await service.webhooks()
      await service.request('PUT', `/v1/webhooks/${left.uuid}`, {
        body: { url: zap.url, events: ['response.updated'], campaignUuid: campaign.uuid, disabled: true },
      })
      await service.post('/v1/webhooks', { url: zap.url, events: ['file.uploaded'] })
      const { uuid: other } = await service.post('/v1/webhooks', { url: `${zap.url}other`, events: ['response.created'] })
      const { id } = await subscribe()
      const [mine, ...rest] = (await service.webhooks()).filter(({ uuid }) => uuid !== other)
      assert.deepEqual(rest, [])
      assert.deepEqual([mine.uuid, mine.events, mine.campaignUuid, mine.disabled], [id, ['response.created'], null, false])
      await service.request('DELETE', `/v1/webhooks/${other}`)
    })

    await t.test('while a secret is rotated, deliveries are accepted', async () => {
      const subscribeData = await subscribe()
      await service.post(`/v1/webhooks/${subscribeData.id}/rotate`, {})
      await service.response(campaign)
      const delivery = await zap.next()
      assert.equal(delivery.headers['webhook-signature'].split(' ').length, 2)
      assert.equal((await perform(subscribeData, delivery)).length, 1)
    })

    await t.test('a delivery that the service repeats comes once', async t => {
      let status = 500
      const slow = await zapUrl(t, () => status)
      const subscribeData = await run(`${operation('response_updated')}.performSubscribe`, { targetUrl: slow.url })
      await service.request('PATCH', path, { body: { responses: { note: { value: ['again'] } } } })
      const first = await slow.next()
      status = 200
      const second = await slow.next()
      assert.notEqual(first.headers['x-service-attempt'], second.headers['x-service-attempt'])
      const tester = core.createAppTester(App)
      const perform = (delivery, subscription = subscribeData) => tester(App.triggers.response_updated.operation.perform, {
        authData: {}, inputData: {}, subscribeData: subscription, ...received(delivery) })
      assert.equal((await perform(first)).length, 1)
      assert.deepEqual(await perform(second), [])
      // Another Zap with the same connection gets the event all the same.
      assert.equal((await perform(second, { ...subscribeData, id: 'another' })).length, 1)
    })

    await t.test('what the service did not sign is refused', async () => {
      const subscribeData = await subscribe()
      await service.response(campaign)
      const delivery = await zap.next()
      const refused = async (changed, subscription = subscribeData) =>
        message(await failure(perform(subscription, { ...delivery, ...changed })))
      const body = Buffer.from(delivery.body.toString().replace('ada@example.com', 'eve@example.com'))
      assert.match(await refused({ body }), /^A delivery was refused: its signature does not fit/)
      for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
        const { [name]: removed, ...headers } = delivery.headers
        assert.match(await refused({ headers }), /a header of the signature is missing/, name)
        const { [name]: changed } = delivery.headers
        assert.match(await refused({ headers: { ...headers, [name]: `${changed}1` } }), /signature does not fit/, name)
      }
      assert.match(await refused({}, { id: subscribeData.id }), /secret of the webhook is not known/)
      assert.match(await refused({}, null), /secret of the webhook is not known/)
      assert.match(await refused({}, { ...subscribeData, secret: `whsec_${'A'.repeat(43)}=` }), /signature does not fit/)
      assert.match(await refused({ headers: signed(subscribeData.secret, delivery, -25 * 3600) }), /its time is more than a day ago/)
      assert.match(await refused({ headers: signed(subscribeData.secret, delivery, 600) }), /or ahead/)
      assert.match(await refused({ headers: signed(subscribeData.secret, delivery, Number.NaN) }), /its time/)
      assert.equal((await perform(subscribeData, { ...delivery, headers: signed(subscribeData.secret, delivery, -3600) })).length, 1)
    })

    await t.test('unsubscribing always works', async () => {
      const subscribeData = await subscribe()
      const unsubscribe = more => run(`${operation('response_created')}.performUnsubscribe`, { ...bundle, subscribeData, ...more })
      await unsubscribe({ authData: { apiKey: 'formsvc_wrong' } })
      assert.ok((await service.webhooks()).some(({ uuid }) => uuid === subscribeData.id))
      await unsubscribe()
      assert.ok(!(await service.webhooks()).some(({ uuid }) => uuid === subscribeData.id))
      await unsubscribe()
      // Without what Zapier should have kept, the URL tells which one it is.
      const { id } = await subscribe()
      await unsubscribe({ subscribeData: {} })
      assert.ok(!(await service.webhooks()).some(({ uuid }) => uuid === id))
    })

    await t.test('a test event is passed on, marked as one', async () => {
      const subscribeData = await subscribe()
      await service.post(`/v1/webhooks/${subscribeData.id}/test`, {})
      const [envelope] = await perform(subscribeData, await zap.next())
      assert.equal(envelope.test, true)
    })
  })
}

test('an event is not dropped when Zapier has no cache', async () => {
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
  const body = Buffer.from('{"id":"1","event":"response.created","data":{"note":"Grüße, 世界"}}')
  const headers = signed(secret, { headers: { 'webhook-id': '1' }, body }, 0)
  const said = []
  const z = {
    errors: core.errors,
    console: { error: text => said.push(text) },
    cache: { get: async () => { throw new Error('no cache') } },
  }
  const { perform } = App.triggers.response_created.operation
  const results = await perform(z, { subscribeData: { id: 'w', secret }, ...received({ headers, body }) })
  assert.deepEqual(results, [JSON.parse(body)])
  assert.match(said[0], /may come twice: no cache/)
})

// Returns the headers of a delivery that was signed so many seconds from now.
function signed(secret, { headers, body }, seconds) {
  const timestamp = String(Math.floor(Date.now() / 1000 + seconds))
  const mac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
  mac.update(`${headers['webhook-id']}.${timestamp}.`).update(body)
  return { ...headers, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${mac.digest('base64')}` }
}
