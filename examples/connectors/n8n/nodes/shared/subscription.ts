import { randomBytes, randomUUID } from 'node:crypto'
import type { IDataObject, IHookFunctions } from 'n8n-workflow'
import { NodeApiError, NodeOperationError } from 'n8n-workflow'

import { list, request } from './transport'

interface Wanted {
  url: string
  events: string[]
  campaignUuid: string | null
}

interface Webhook extends Wanted {
  uuid: string
  disabled: boolean
}

// Tells whether the webhook that we remember is there, as it should be, and with a secret that we know. Another one with
// our address does not count: without its secret, every delivery would have to be refused.
export async function isSubscribed(this: IHookFunctions): Promise<boolean> {
  const { uuid, secret } = this.getWorkflowStaticData('node')
  if (!uuid || !secret) return false
  const { statusCode, body } = await request(this, 'GET', `/v1/webhooks/${uuid}`, { accept: [404] })
  return statusCode !== 404 && fits(body as unknown as Webhook, wanted.call(this))
}

// Makes sure that exactly one webhook has our address, and that its secret is ours.
export async function subscribe(this: IHookFunctions): Promise<boolean> {
  const want = wanted.call(this)
  try {
    return await settle.call(this, want)
  } catch (error) {
    throw isAddressRefused(error) ? notReachable.call(this, want.url) : error
  }
}

function isAddressRefused(error: unknown): boolean {
  const faults = error instanceof NodeApiError ? error.context.errors : undefined
  return Array.isArray(faults) && (faults as IDataObject[]).some(({ code }) => code === 'url_refused')
}

// What to do is in the message: where a workflow is published, n8n shows nothing else.
function notReachable(this: IHookFunctions, url: string): NodeOperationError {
  return new NodeOperationError(
    this.getNode(),
    `The service sends nothing to ${new URL(url).origin}, since that address is not public. Use the Forms Campaign Service Polling ` +
      'Trigger, or set N8N_WEBHOOK_URL to a public address of n8n, or have the operator of the service allow this one (--webhook-allow).',
  )
}

async function settle(this: IHookFunctions, want: Wanted): Promise<boolean> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  // The second time round is for a webhook that came into being after the list was read.
  for (const last of [false, true]) {
    const found = (await webhooks.call(this)).filter(({ url }) => url === want.url)
    const uuid = found.length > 0
      ? await takeOver.call(this, found, { ...want, secret })
      : await add.call(this, { ...want, secret }, last)
    if (uuid) {
      Object.assign(this.getWorkflowStaticData('node'), { uuid, secret })
      return true
    }
  }
  throw new NodeOperationError(this.getNode(), `Could not subscribe ${want.url}: its webhook keeps changing`, {
    description: 'Something else changes the webhooks of this account at the same time. Try again.',
  })
}

// Deletes our webhook. It never fails, since n8n would then keep the workflow from being switched off; the webhook stays
// remembered in that case, and is taken up again when the workflow is switched on.
export async function unsubscribe(this: IHookFunctions): Promise<boolean> {
  const data = this.getWorkflowStaticData('node')
  try {
    const url = this.getNodeWebhookUrl('default')
    const uuids = data.uuid
      ? [data.uuid]
      : (await webhooks.call(this)).filter((webhook) => webhook.url === url).map(({ uuid }) => uuid)
    for (const uuid of uuids) {
      await request(this, 'DELETE', `/v1/webhooks/${uuid}`, { accept: [404] })
    }
  } catch (error) {
    this.logger.error(
      `The webhook ${data.uuid ?? ''} of "${this.getNode().name}" could not be deleted from the Forms Campaign Service; ` +
        `delete it there, or switch the workflow on and off again: ${(error as Error).message}`,
    )
    return false
  }
  delete data.uuid
  delete data.secret
  return true
}

function wanted(this: IHookFunctions): Wanted {
  const url = this.getNodeWebhookUrl('default')
  if (!url) throw new NodeOperationError(this.getNode(), 'n8n gives this trigger no address')
  const events = this.getNodeParameter('events') as string[]
  const campaign = this.getNodeParameter('campaign', '', { extractValue: true })
  return { url, events, campaignUuid: String(campaign || '') || null }
}

function fits(webhook: Webhook, want: Wanted): boolean {
  return (
    !webhook.disabled &&
    webhook.url === want.url &&
    webhook.campaignUuid === want.campaignUuid &&
    [...webhook.events].sort().join() === [...want.events].sort().join()
  )
}

async function webhooks(this: IHookFunctions): Promise<Webhook[]> {
  return await list<Webhook>(this, '/v1/webhooks')
}

// Makes the first webhook what it should be, with our secret, and deletes the others. It returns undefined when the first
// one is gone by now.
async function takeOver(
  this: IHookFunctions,
  [first, ...others]: Webhook[],
  body: IDataObject,
): Promise<string | undefined> {
  const { statusCode } = await request(this, 'PUT', `/v1/webhooks/${first.uuid}`, {
    body: { ...body, disabled: false },
    accept: [404],
  })
  if (statusCode === 404) return undefined
  for (const { uuid } of others) {
    await request(this, 'DELETE', `/v1/webhooks/${uuid}`, { accept: [404] })
  }
  return first.uuid
}

// Adds a webhook. It returns undefined when there is one by now, whose secret is not ours.
async function add(this: IHookFunctions, body: IDataObject, last: boolean): Promise<string | undefined> {
  const { statusCode, body: webhook } = await request(this, 'POST', '/v1/webhooks', {
    body,
    headers: { 'Idempotency-Key': randomUUID() },
    accept: last ? [] : [409],
  })
  return statusCode === 201 ? String((webhook as IDataObject).uuid) : undefined
}
