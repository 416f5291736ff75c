// Workflows that the trigger node starts, and deliveries as the service would make them.
import { createHmac, randomUUID } from 'node:crypto'

import { eventually } from '../../testing/service.mjs'
import { byId } from './act.mjs'
import { triggerType } from './n8n.mjs'

// Makes a workflow that a trigger starts; it is not active yet.
export async function makeTrigger(n8n, service, credentials, events, campaign, more = { simple: false }) {
  const webhookId = randomUUID()
  const id = await n8n.workflow(
    { type: triggerType, webhookId, credentials, parameters: { events, ...(campaign && { campaign: byId(campaign.uuid) }), ...more } },
    { type: 'n8n-nodes-base.noOp' },
  )
  return new Subscriber(n8n, service, id, `${n8n.url}/webhook/${webhookId}/webhook`)
}

class Subscriber {
  constructor(n8n, service, id, url) {
    Object.assign(this, { n8n, service, id, url })
  }

  async webhooks() {
    return (await this.service.webhooks()).filter(({ url }) => url === this.url)
  }

  // Switches the workflow on, and waits until it is subscribed and n8n has made a note of it. Returns the webhook.
  async activate() {
    await this.n8n.activate(this.id)
    return await eventually('the workflow is subscribed', async () => {
      const [webhook] = await this.webhooks()
      return webhook && (await this.remembered())?.uuid === webhook.uuid && webhook
    })
  }

  // Switches the workflow off, and waits until n8n has forgotten the subscription.
  async deactivate() {
    await this.n8n.deactivate(this.id)
    await eventually('the workflow is unsubscribed', async () => !(await this.remembered())?.uuid)
  }

  // What n8n has kept of the subscription: the webhook's UUID and secret.
  async remembered() {
    const { staticData } = await this.n8n.api('GET', `/workflows/${this.id}`)
    return (typeof staticData === 'string' ? JSON.parse(staticData) : staticData)?.['node:node 0']
  }

  events() {
    return this.n8n.events(this.id)
  }

  // Waits until the workflow has been started so many times, and returns the events that did it.
  async started(count, patience) {
    return await eventually(`${count} executions`, async () => {
      const events = await this.events()
      return events.length >= count && events
    }, patience)
  }

  // Sends what the service would send and returns the status of the answer and its text.
  async deliver(event, { secret, now = Date.now(), sign = event, ...headers } = {}) {
    secret ??= (await this.remembered()).secret
    const body = typeof event === 'string' ? event : JSON.stringify(event)
    const signed = typeof sign === 'string' ? sign : JSON.stringify(sign)
    const timestamp = String(Math.floor(now / 1000))
    const answer = await fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json', 'webhook-id': 'msg', 'webhook-timestamp': timestamp,
        'webhook-signature': signature(secret, 'msg', timestamp, signed), ...headers,
      },
      body,
    })
    return { status: answer.status, text: await answer.text() }
  }
}

export function signature(secret, id, timestamp, body) {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}
