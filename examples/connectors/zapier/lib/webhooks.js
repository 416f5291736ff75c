'use strict'

const { randomBytes, randomUUID } = require('crypto')
const { call } = require('./http')
const { repeating } = require('./repeat')

// Subscribes a Zap's own URL to an event and returns what Zapier keeps: the webhook's id and its secret.
//
// Zapier's URL belongs to one Zap alone, so a webhook with it is left from an earlier attempt. It is taken over with a
// secret that is known, since the service never shows one again; so there is neither a second one nor an unknown secret.
async function subscribe(z, bundle, event) {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const wanted = {
    url: bundle.targetUrl,
    events: [event],
    campaignUuid: bundle.inputData.campaign || null,
    secret,
  }
  // Someone else may delete or make the webhook between two requests, and then it has to be looked for again.
  for (let attempt = 1; ; attempt++) {
    try {
      return { id: await put(z, bundle, wanted), secret }
    } catch (error) {
      const moved = error.problem?.code === 'webhook_exists' || error.problem?.code === 'not_found'
      if (!moved || attempt === 3) throw error
    }
  }
}

async function put(z, bundle, wanted) {
  const [first, ...others] = await ours(z, bundle)
  for (const { uuid } of others) await remove(z, bundle, uuid)
  if (first) {
    await repeating(() => call(z, bundle, 'PUT', `/v1/webhooks/${first.uuid}`, { body: { ...wanted, disabled: false } }))
    return first.uuid
  }
  const headers = { 'Idempotency-Key': `zapier-${randomUUID()}` }
  const { data } = await repeating(() => call(z, bundle, 'POST', '/v1/webhooks', { body: wanted, headers }))
  return data.uuid
}

// Returns the webhooks that send to this Zap. An account has at most 50, so one page has them all.
async function ours(z, bundle) {
  const { data } = await repeating(() => call(z, bundle, 'GET', '/v1/webhooks', { query: { limit: 1000 } }))
  return data.items.filter(({ url }) => url === bundle.targetUrl)
}

// Deletes a webhook. The error for one that is gone has the code not_found, which both callers expect.
function remove(z, bundle, uuid) {
  return repeating(() => call(z, bundle, 'DELETE', `/v1/webhooks/${encodeURIComponent(uuid)}`))
}

// Ends the subscription. A failure is logged and no more, so that a Zap can always be switched off; Zapier refuses what
// still arrives at its URL, and the webhook can be deleted in the console.
async function unsubscribe(z, bundle) {
  try {
    const known = bundle.subscribeData?.id
    const uuids = known ? [known] : (await ours(z, bundle)).map(({ uuid }) => uuid)
    for (const uuid of uuids) await remove(z, bundle, uuid)
  } catch (error) {
    if (error.problem?.code !== 'not_found') {
      z.console.error(`The webhook ${bundle.subscribeData?.id ?? `to ${bundle.targetUrl}`} could not be deleted; ` +
        `delete it in the console of the service, under Webhooks. ${error.message}`)
    }
  }
  return {}
}

module.exports = { subscribe, unsubscribe }
