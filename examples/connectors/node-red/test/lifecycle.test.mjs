// What becomes of the subscription, and of events, when flows change and when Node-RED or the service ends.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { databases, eventually } from '../../testing/service.mjs'
import { account, startBoth, startRelay, tab, trigger } from './nodered.mjs'

// Most of the time is waiting, so both databases take their turn at once.
describe('lifecycle', { concurrency: true }, () => {
  for (const database of databases()) describe(database.name, { concurrency: false }, () => {
    let service, nodeRed, relay, campaign

    before(async () => {
      // After a crash, the service lets deliveries that were under way rest until their lease ends.
      [service, nodeRed] = await startBoth(database, '--webhook-timeout', '1s', '--webhook-lease', '6s')
      relay = await startRelay(() => service.url)
      campaign = await service.campaign()
    })

    after(() => Promise.all([service?.stop(), nodeRed?.stop(), relay?.stop()]))

    // The flow of most tests. Without credentials, an account that has been deployed keeps its own.
    const flow = (more = {}) => [tab(), account(service, { credentials: undefined }), trigger(nodeRed, more), ...nodeRed.record('record')]
    const urls = async () => (await service.webhooks()).map(({ url }) => url)
    const url = (path = 'formsvc/trigger') => `${nodeRed.publicUrl}/${path}`

    // Waits for exactly the webhooks that are wanted.
    const subscribed = (...wanted) => eventually(`webhooks ${wanted}`, async () => {
      const got = await urls()
      return got.length === wanted.length && wanted.every(one => got.includes(one))
    })

    // Waits until the node listens: it asks for failed deliveries last.
    const listening = from => eventually('the trigger listens', () =>
      relay.requests.slice(from).some(({ path }) => path.endsWith('/redeliver')))

    // Waits for one message for each response.
    async function arrived(...responses) {
      const wanted = responses.map(({ uuid }) => uuid)
      const got = await eventually(`${wanted.length} messages`, async () => {
        const all = (await nodeRed.messages()).map(({ payload }) => payload.data.response.uuid)
        return wanted.every(uuid => all.includes(uuid)) && all
      })
      for (const uuid of wanted) assert.equal(got.filter(one => one === uuid).length, 1, 'one message each')
    }

    const send = () => service.response(campaign)

    test('deploying again leaves one webhook, and the same', async () => {
      await nodeRed.deploy([tab(), account(service), trigger(nodeRed), ...nodeRed.record('record')])
      await subscribed(url())
      const [{ uuid }] = await service.webhooks()
      await arrived(await send())
      await nodeRed.deploy(flow({ events: ['response.created', 'response.completed'] }), 'nodes')
      await eventually('the events change', async () => (await service.webhooks())[0].events.length === 2)
      await nodeRed.deploy(flow())
      await eventually('the events change', async () => (await service.webhooks())[0].events.length === 1)
      assert.deepEqual((await service.webhooks()).map(webhook => webhook.uuid), [uuid])
      await arrived(await send())
    })

    for (const signal of ['SIGTERM', 'SIGKILL']) {
      test(`Node-RED ends with ${signal}: what happens meanwhile arrives`, async () => {
        const [{ uuid }] = await service.webhooks()
        await nodeRed.end(signal)
        assert.deepEqual(await urls(), [url()], 'the webhook stays')
        const missed = [await send()]
        if (signal === 'SIGKILL') {
          // Until the service has given up, which the restarted node has to make good.
          await eventually('a delivery failed for good', async () =>
            (await service.get(`/v1/webhooks/${uuid}/deliveries?state=failed`)).items.length > 0)
          missed.push(await send())
        }
        await nodeRed.start()
        await arrived(...missed, await send())
        assert.deepEqual((await service.webhooks()).map(webhook => webhook.uuid), [uuid])
      })
    }

    test('a webhook keeps headers that were added, is enabled, and its double goes', async () => {
      const [{ uuid }] = await service.webhooks()
      await service.request('PUT', `/v1/webhooks/${uuid}`,
        { body: { url: url(), events: ['file.uploaded'], headers: { 'X-Token': 'kept' }, disabled: true } })
      await service.post('/v1/webhooks', { url: url(), events: ['response.updated'] })
      await nodeRed.deploy(flow({ name: 'again' }))
      await eventually('one webhook', async () => (await service.webhooks()).length === 1)
      await eventually('it is as it was', async () => {
        const [webhook] = await service.webhooks()
        return !webhook.disabled && webhook.events[0] === 'response.created' && 'X-Token' in webhook.headers
      })
      await arrived(await send())
    })

    test('a webhook that was deleted is made again', async () => {
      const [{ uuid }] = await service.webhooks()
      await service.request('DELETE', `/v1/webhooks/${uuid}`)
      await nodeRed.deploy(flow({ name: 'once more' }))
      await subscribed(url())
      await arrived(await send())
    })

    test('another path takes the webhook along', async () => {
      const [{ uuid }] = await service.webhooks()
      await nodeRed.deploy(flow({ path: '/other/path' }))
      await subscribed(url('other/path'))
      assert.equal((await service.webhooks())[0].uuid, uuid)
      await arrived(await send())
      assert.equal((await fetch(url(), { method: 'POST' })).status, 404)
    })

    test('two nodes cannot have one path', async () => {
      await nodeRed.deploy([...flow({ path: 'same' }), trigger(nodeRed, { id: 'second', path: 'same' })])
      await eventually('the second says so', () => /\[formsvc-in:second\] Another node has the path \/same already/.test(nodeRed.output))
      await subscribed(url('same'))
    })

    const removals = {
      'the node is deleted': () => [tab(), account(service, { credentials: undefined })],
      'the node is disabled': () => flow({ d: true }),
      'the flow is disabled': () => [tab({ disabled: true }), ...flow().slice(1)],
      'the account is deleted': () => flow().filter(({ type }) => type !== 'formsvc-account'),
      'everything is deleted': () => [],
    }
    for (const [what, flows] of Object.entries(removals)) {
      for (const type of ['full', 'nodes']) {
        test(`${what} (${type}): no webhook is left`, async () => {
          await nodeRed.deploy([tab(), account(service), trigger(nodeRed), ...nodeRed.record('record')])
          await subscribed(url())
          await nodeRed.deploy(flows(), type)
          await subscribed()
        })
      }
    }

    test('a subflow: each instance has its own webhook, which goes with it', async () => {
      const sub = [
        { id: 'sub', type: 'subflow', name: 'Sub', in: [], out: [] },
        { ...trigger(nodeRed, { wires: [[]] }), z: 'sub' },
      ]
      const instance = id => ({ id, z: 'flow', type: 'subflow:sub', wires: [] })
      await nodeRed.deploy([tab(), account(service), ...sub, instance('one'), instance('two')])
      await subscribed(url('formsvc/one-trigger'), url('formsvc/two-trigger'))
      await nodeRed.deploy([tab(), account(service, { credentials: undefined }), ...sub, instance('two')])
      await subscribed(url('formsvc/two-trigger'))
      await nodeRed.deploy([])
      await subscribed()
    })

    test('another account: the webhook in the old one goes', async () => {
      const other = `other-${service.account}`
      await service.cli('accounts', 'create', other)
      const key = await service.cli('keys', 'create', '--name', 'other', '--permissions', 'all', '--account', other)
      await nodeRed.deploy([tab(), account(service), trigger(nodeRed), ...nodeRed.record('record')])
      await subscribed(url())
      await nodeRed.deploy([tab(), account({ ...service, url: service.url, key }), trigger(nodeRed), ...nodeRed.record('record')])
      await subscribed()
      const theirs = async () => (await service.request('GET', '/v1/webhooks', { key })).body.items
      await eventually('theirs is there', async () => (await theirs()).some(webhook => webhook.url === url()))
      assert.equal((await theirs()).length, 1)
      await nodeRed.deploy([])
      await eventually('none is left', async () => (await theirs()).length === 0)
    })

    test('a service that is away when the flows start, and when the node is removed', async () => {
      relay.meddle = () => null
      await nodeRed.deploy([tab(), account({ url: relay.url, key: service.key }), trigger(nodeRed), ...nodeRed.record('record')])
      await eventually('the node says so', () => /\[formsvc-in:trigger\] http:\S+ cannot be reached/.test(nodeRed.output))
      relay.meddle = null
      await subscribed(url())
      relay.meddle = () => null
      await nodeRed.deploy([])
      await eventually('the node says what is left', () => /The webhook for \S+formsvc\/trigger could not be deleted/.test(nodeRed.output))
      relay.meddle = null
      // The next deployment makes up for it.
      await nodeRed.deploy([tab()])
      await subscribed()
    })

    test('the answer to a creation gets lost: one webhook', async () => {
      let lost = false
      relay.meddle = async (request, forward) => {
        const answer = await forward()
        if (lost || request.method !== 'POST') return answer
        lost = true
        return null
      }
      const from = relay.requests.length
      await nodeRed.deploy([tab(), account({ url: relay.url, key: service.key }), trigger(nodeRed), ...nodeRed.record('record')])
      await listening(from)
      assert.ok(lost)
      assert.deepEqual(await urls(), [url()])
      await arrived(await send())
      relay.meddle = null
    })

    for (const signal of ['SIGTERM', 'SIGKILL']) {
      test(`the service ends with ${signal} while flows work: nothing is lost, nothing is done twice`, async () => {
        const id = signal.toLowerCase()
        const act = (operation, more) => ({ z: 'flow', type: 'formsvc', account: 'account', operation, ...more,
          campaign: 'event.data.campaign.uuid', campaignType: 'msg', response: 'event.data.response.uuid', responseType: 'msg' })
        await nodeRed.deploy([tab(), account(service), trigger(nodeRed, { wires: [['comment']] }),
          { id: 'comment', ...act('addComment'), comment: 'seen', commentType: 'str', wires: [['status']] },
          { id: 'status', ...act('updateStatus'), newStatus: 'validated', newStatusType: 'str', wires: [[id]] },
          ...nodeRed.record(id, id)])
        await subscribed(url())
        const responses = []
        for (let i = 0; i < 12; i++) {
          responses.push(await send())
          if (i === 6) await service.restart(signal)
        }
        await service.restart(signal)
        // The same event may come twice.
        await eventually('all are done', async () =>
          new Set((await nodeRed.messages(id)).map(({ event }) => event.data.response.uuid)).size >= responses.length)
        for (const { uuid } of responses) {
          const at = `/v1/campaigns/${campaign.uuid}/responses/${uuid}`
          assert.equal((await service.get(at)).status, 'validated')
          assert.equal((await service.get(`${at}/comments`)).total, 1)
        }
      })
    }

    test('Node-RED dies after an event came: the same event again does nothing twice', async () => {
      await nodeRed.deploy([tab(), account({ url: relay.url, key: service.key }), trigger(nodeRed, { wires: [['comment']] }),
        { id: 'comment', z: 'flow', type: 'formsvc', account: 'account', operation: 'addComment', comment: 'once', commentType: 'str',
          campaign: 'event.data.campaign.uuid', campaignType: 'msg', response: 'event.data.response.uuid', responseType: 'msg', wires: [['twice']] },
        ...nodeRed.record('twice', 'twice')])
      await subscribed(url())
      const { uuid } = await send()
      const came = times => eventually(`${times} comments`, async () =>
        (await nodeRed.messages('twice')).filter(({ event }) => event.data.response.uuid === uuid).length >= times)
      await came(1)
      await nodeRed.end('SIGKILL')
      const from = relay.requests.length
      await nodeRed.start()
      await listening(from)
      // Redelivered by hand, to a Node-RED that does not know it any more.
      const [webhook] = await service.webhooks()
      const deliveries = (await service.get(`/v1/webhooks/${webhook.uuid}/deliveries`)).items
      const [{ _msgid }] = (await nodeRed.messages('twice')).filter(({ event }) => event.data.response.uuid === uuid)
      const delivery = deliveries.find(one => JSON.stringify(one).includes(_msgid))
      await service.request('POST', `/v1/deliveries/${delivery.uuid}/redeliver`)
      await came(2)
      assert.equal((await service.get(`/v1/campaigns/${campaign.uuid}/responses/${uuid}/comments`)).total, 1)
    })
  })
})
