// What the polling trigger does. n8n polls once a minute at most, so both databases take their turn at once.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { databases, eventually, startAsItIs } from '../../testing/service.mjs'
import { byId } from './act.mjs'
import { output, pollTriggerType } from './n8n.mjs'
import { n8n } from './shared.mjs'

// Makes a workflow that a polling trigger starts, publishes it, and waits until the trigger has begun.
export async function publish(server, credentials, parameters = {}, name = 'poll') {
  const id = await server.workflow(
    { name, type: pollTriggerType, credentials, parameters: { pollTimes: { item: [{ mode: 'everyMinute' }] }, ...parameters } },
    { type: 'n8n-nodes-base.noOp' },
  )
  await server.activate(id)
  return id
}

// Returns the events that a workflow was started with when there are so many: those of each execution.
export async function polled(server, id, count, name = 'poll') {
  return await eventually(`${count} events`, async () => {
    const lists = (await server.executions(id)).map(execution => output(execution, name).map(({ json }) => json))
    return lists.flat().length >= count && lists
  }, 180_000)
}

describe('polling', { concurrency: true }, () => {
  for (const database of databases()) describe(database.name, { concurrency: true }, () => {
    let service, credentials
    before(async () => {
      // As it is by default, a service sends nothing to this n8n.
      service = await startAsItIs(database, '--quota', '10000')
      credentials = await n8n.credential(service)
    })
    after(() => service?.stop())

    const respond = (campaign, count) => Promise.all(Array.from({ length: count }, () => service.response(campaign, { a: { value: ['x'] } })))
    const uuids = events => events.map(({ data }) => data.response.uuid)
    // What the feed has, which is in the order of commits.
    async function feed(campaign) {
      const items = []
      for (let cursor, more = true; more;) {
        const page = await service.get(`/v1/events?limit=1000&campaignUuid=${campaign.uuid}${cursor ? `&cursor=${cursor}` : ''}`)
        items.push(...page.items)
        ;({ nextCursor: cursor, more } = page)
      }
      return items
    }

    test('it begins now, and catches up in order, each event once, over several pages and polls', async () => {
      const campaign = await service.campaign()
      const other = await service.campaign('Another')
      await respond(campaign, 1)
      const id = await publish(n8n, credentials, { campaign: byId(campaign.uuid), simple: false })
      await n8n.published(id)
      await respond(other, 1)
      for (let i = 0; i < 21; i++) await respond(campaign, 50)
      const lists = await polled(n8n, id, 1050)
      assert.deepEqual(lists.flat(), (await feed(campaign)).slice(1))
      assert.ok(lists.every(list => list.length <= 1000))
      await n8n.deactivate(id)
    })

    test('the response of an event is simplified by default', async () => {
      const campaign = await service.campaign()
      const id = await publish(n8n, credentials, { campaign: byId(campaign.uuid), events: ['response.status_changed', 'file.uploaded'] })
      await n8n.published(id)
      const [made] = await respond(campaign, 1)
      await service.request('PATCH', `/v1/campaigns/${campaign.uuid}/responses/${made.uuid}`, { body: { status: 'validated' } })
      const [event, ...others] = (await polled(n8n, id, 1)).flat()
      assert.deepEqual(others, [])
      assert.deepEqual([event.event, event.data.previousStatus, event.data.response.status], ['response.status_changed', 'pending', 'validated'])
      assert.deepEqual([event.data.response.answers, event.data.response.responses], [{ a: 'x' }, undefined])
      await n8n.deactivate(id)
    })

    test('when the service does not know its place any more it begins anew, and says so', async () => {
      const own = await n8n.credential(service)
      const node = `poll of ${service.account}`
      const id = await publish(n8n, own, {}, node)
      await n8n.published(id)
      // The key of another account, in the same credential.
      const name = `other-${service.account}`
      await service.cli('accounts', 'create', name)
      const key = await service.cli('keys', 'create', '--name', 'other', '--permissions', 'all', '--account', name)
      await n8n.changeCredential(own, { url: service.url, key })
      await eventually('the log tells', () => n8n.log.includes(`"${node}": the Forms Campaign Service does not know our place`), 180_000)
      const theirs = (await service.request('POST', '/v1/campaigns', { key, body: { title: 'Theirs' } })).body
      const made = (await service.request('POST', `/v1/campaigns/${theirs.uuid}/responses`,
        { key, body: { user: { email: 'ada@example.com' }, responses: {} } })).body
      assert.deepEqual(uuids((await polled(n8n, id, 1, node)).flat()), [made.uuid])
      await n8n.deactivate(id)
    })

    test('why it cannot begin is told in the service\'s words', async () => {
      const key = await service.newKey('webhooks:read')
      const id = await publish(n8n, await n8n.credential({ url: service.url, key }))
      assert.match(await n8n.whyNotPublished(id), /The key lacks the permission responses:read\./)
    })
  })
})
