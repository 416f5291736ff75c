// n8n and the service as they are by default, the package installed as the documentation has it: nothing is set but where n8n's
// data is and its ports.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { startAsItIs, startService } from '../../testing/service.mjs'
import { startDefaultN8n, triggerType } from './n8n.mjs'
import { polled, publish } from './poll.mjs'
import { makeTrigger } from './subscriber.mjs'

describe('n8n as it is by default', () => {
  let n8n
  before(async () => { n8n = await startDefaultN8n() })
  after(() => n8n?.stop())

  test('a service that may send to this machine starts workflows, with simplified responses', async t => {
    const service = await startService()
    t.after(() => service.stop())
    const subscriber = await makeTrigger(n8n, service, await n8n.credential(service), ['response.created'], undefined, {})
    assert.match((await subscriber.activate()).url, /^http:\/\/localhost:/)
    await service.response(await service.campaign(), { name: { value: ['Ada'] } })
    const [event] = await subscriber.started(1)
    assert.deepEqual(event.data.response.answers, { name: 'Ada' })
    await subscriber.deactivate()
  })

  test('a service that may not says so where the workflow is published, and can be polled, also over a restart', async t => {
    const service = await startAsItIs()
    t.after(() => service.stop())
    const credentials = await n8n.credential(service)
    const refused = await n8n.workflow({ type: triggerType, credentials, parameters: {} }, { type: 'n8n-nodes-base.noOp' })
    await n8n.activate(refused)
    const why = await n8n.whyNotPublished(refused)
    assert.match(why, /^.*The service sends nothing to http:\/\/localhost:\d+, since that address is not public\. Use the Forms Campaign Service Polling Trigger/)
    await n8n.deactivate(refused)

    const id = await publish(n8n, credentials)
    await n8n.published(id)
    const campaign = await service.campaign()
    const made = [await service.response(campaign)]
    await n8n.end()
    made.push(await service.response(campaign))
    await n8n.start()
    made.push(await service.response(campaign))
    const events = (await polled(n8n, id, 3)).flat()
    assert.deepEqual(events.map(({ data }) => data.response.uuid), made.map(({ uuid }) => uuid))
    await n8n.deactivate(id)
  })
})
