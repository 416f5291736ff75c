'use strict'

const { createHmac, timingSafeEqual } = require('crypto')

// How old a delivery may be, and how far ahead of our clock, in seconds. Zapier accepts a delivery first and runs this
// code later, at times much later, and then the service does not send it again. So the usual five minutes would lose
// events; instead the ids of a day are remembered (see trigger.js), and a replay is either known or too old.
const MAX_AGE = 24 * 60 * 60
const MAX_AHEAD = 5 * 60

// Returns the envelope of a delivery whose Standard Webhooks signature is right. It throws an Error that says what is
// wrong with any other. request is bundle.rawRequest, secret is the one that the webhook was made with, and now is the
// time in milliseconds.
function verify(request, secret, now = Date.now()) {
  const prefix = 'whsec_'
  if (typeof secret !== 'string' || !secret.startsWith(prefix)) {
    throw new Error('the secret of the webhook is not known; switch the Zap off and on again')
  }
  if (typeof request?.content !== 'string') throw new Error('it has no body')
  const id = header(request.headers, 'webhook-id')
  const timestamp = header(request.headers, 'webhook-timestamp')
  const signatures = header(request.headers, 'webhook-signature')
  if (!id || !timestamp || !signatures) throw new Error('a header of the signature is missing')
  const wanted = createHmac('sha256', Buffer.from(secret.slice(prefix.length), 'base64'))
    .update(`${id}.${timestamp}.${request.content}`).digest('base64')
  if (!signatures.split(' ').some(signature => isSame(signature, `v1,${wanted}`))) {
    throw new Error('its signature does not fit; if the secret was changed, switch the Zap off and on again')
  }
  const age = now / 1000 - Number(timestamp)
  if (!(age <= MAX_AGE && age >= -MAX_AHEAD)) throw new Error('its time is more than a day ago, or ahead')
  return JSON.parse(request.content)
}

// While a secret is rotated there are several signatures, one for each secret. They are compared as they are written,
// since decoding would pass over what does not belong there.
function isSame(signature, wanted) {
  const [a, b] = [Buffer.from(signature), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}

// Returns the value of a header. Zapier hands over "webhook-id" as "Http-Webhook-Id".
function header(headers, name) {
  for (const [key, value] of Object.entries(headers ?? {})) {
    const lower = key.toLowerCase()
    if (lower === name || lower === `http-${name}`) return String(value)
  }
  return undefined
}

module.exports = { MAX_AGE, verify }
