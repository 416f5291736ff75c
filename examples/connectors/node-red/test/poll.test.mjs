// The node that asks for events.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { databases, eventually, startAsItIs } from '../../testing/service.mjs'
import { account, startNodeRed, startRelay, tab } from './nodered.mjs'

// What Node-RED generates, and contexts on disk, as the help says.
const KEEPING = `module.exports = { flowFile: 'flows.json', telemetry: { enabled: false },
  contextStorage: { default: { module: 'localfilesystem', config: { cache: false } } } }`

// Most of the time is waiting, so both databases take their turn at once.
describe('polling', { concurrency: true }, () => {
  for (const database of databases()) describe(database.name, { concurrency: false }, () => {
    let service, nodeRed, relay, campaign

    before(async () => {
      // A service as it is by default: it sends nothing to this machine, and has a quota.
      [service, nodeRed] = await Promise.all([startAsItIs(database, '--quota', '5000'), startNodeRed({ settings: KEEPING })])
      relay = await startRelay(() => service.url)
      campaign = await service.campaign()
    })

    after(() => Promise.all([service?.stop(), nodeRed?.stop(), relay?.stop()]))

    const flow = (more = {}, key = service.key) => [tab(), account({ url: relay.url, key }), {
      id: 'trigger', z: 'flow', type: 'formsvc-poll', account: 'account', events: ['response.created'], campaign: '', interval: 5,
      wires: [['record']], ...more,
    }, ...nodeRed.record('record'), ...nodeRed.watch()]
    const polls = () => relay.requests.filter(({ path }) => path.startsWith('/v1/events'))

    // Deploys a flow and waits until it polls. One of two greens may be the last of the node of before, recorded late.
    async function polling(...args) {
      await nodeRed.deploy(flow(...args), 'nodes')
      const from = (await nodeRed.statuses()).length
      await eventually('it polls', async () =>
        (await nodeRed.statuses()).slice(from).filter(text => /^green: polling since \d{4}-/.test(text)).length >= 2)
    }

    // Waits for one message for each response since some, in their order.
    async function arrived(from, ...responses) {
      await eventually(`${responses.length} messages`, async () => (await nodeRed.messages()).length >= from + responses.length)
      const got = (await nodeRed.messages()).slice(from)
      assert.deepEqual(got.map(({ payload }) => payload.data.response.uuid), responses.map(({ uuid }) => uuid))
      for (const { payload, event, topic, _msgid } of got) {
        assert.deepEqual([event, topic, _msgid], [payload, payload.event, payload.id])
      }
    }
    const count = async () => (await nodeRed.messages()).length

    test('it begins now, goes on in order, and leaves out nothing while Node-RED is away', async () => {
      await service.response(campaign)
      await polling()
      await arrived(0, await service.response(campaign), await service.response(campaign))
      // The next poll begins after the position was kept; what came since then would come again.
      const seen = polls().length
      await eventually('the next poll', () => polls().length > seen)
      await nodeRed.end('SIGKILL')
      const missed = []
      for (let i = 0; i < 450; i++) missed.push(await service.response(campaign, {}))
      const from = polls().length
      await nodeRed.start()
      await arrived(2, ...missed)
      assert.ok(polls().length - from >= 3, 'several pages')
      await nodeRed.deploy(flow({ name: 'again' }), 'nodes')
      await arrived(452, await service.response(campaign))
    })

    test('only the events that are wanted, also after a change', async () => {
      const from = await count()
      await polling({ events: ['response.completed', 'response.status_changed'] })
      const made = await service.response(campaign)
      await service.request('PATCH', `/v1/campaigns/${campaign.uuid}/responses/${made.uuid}`, { body: { status: 'completed' } })
      await arrived(from, made, made)
      const last = (await nodeRed.messages()).slice(-2).map(({ topic }) => topic)
      assert.deepEqual(last.sort(), ['response.completed', 'response.status_changed'])
    })

    test('another campaign: it begins anew', async () => {
      const other = await service.campaign('Other')
      await service.response(other)
      const from = await count()
      await polling({ campaign: other.uuid })
      await service.response(campaign)
      await arrived(from, await service.response(other))
      assert.doesNotMatch(nodeRed.output, /doesn't know the position/, 'it need not be told')
    })

    test('another account: its position there is none, and it begins anew', async () => {
      const name = `other-${service.account}`
      await service.cli('accounts', 'create', name)
      const key = await service.cli('keys', 'create', '--name', 'other', '--permissions', 'all', '--account', name)
      const theirs = (await service.request('POST', '/v1/campaigns', { key, body: { title: 'Theirs' } })).body
      const respond = async () => (await service.request('POST', `/v1/campaigns/${theirs.uuid}/responses`,
        { key, body: { user: { email: 'ada@example.com' }, responses: {} } })).body
      await polling()
      await respond()
      const from = await count()
      await polling({}, key)
      assert.match(nodeRed.output, /doesn't know the position from \d{4}-/)
      await arrived(from, await respond())
    })

    test('a service that is busy, refuses or is away shows, and is asked when it may be', async () => {
      await polling()
      const from = await count()
      const times = []
      relay.meddle = (request, forward) => {
        times.push(Date.now())
        if (times.length > 1) return forward()
        return {
          status: 429, headers: { 'content-type': 'application/problem+json', 'retry-after': '7' },
          body: JSON.stringify({ title: 'Too Many Requests', detail: 'The quota is used up.', code: 'quota_exceeded' }),
        }
      }
      const made = await service.response(campaign)
      await nodeRed.shows(/^red: Too Many Requests: The quota is used up\. \(again at \d{4}-/)
      await arrived(from, made)
      assert.ok(times[1] - times[0] >= 7000, `${times[1] - times[0]} ms`)
      await nodeRed.shows(/^green/)
      relay.meddle = () => null
      await nodeRed.shows(/^red: http:\S+ cannot be reached: .* \(again at /)
      relay.meddle = null
      await nodeRed.deploy(flow({}, await service.newKey('webhooks:read')), 'nodes')
      await nodeRed.shows(/^red: Forbidden: The key lacks the permission responses:read\./)
    })
  })
})
