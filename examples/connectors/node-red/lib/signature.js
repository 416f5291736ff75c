'use strict'
// Who sent a delivery, and when: the signature of Standard Webhooks (https://www.standardwebhooks.com).

const { createHmac, timingSafeEqual } = require('crypto')

// How far the time of sending may be from now. Whoever recorded a delivery cannot send it again later.
const TOLERANCE = 5 * 60

// Returns why a request is not to be trusted, or '' if it is. headers are those of Node's http, body the raw bytes.
function distrust(headers, body, secret, now = Date.now() / 1000) {
  if (!secret) return 'This node has not subscribed yet.'
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature']
  if (!id || !timestamp || !signatures) return 'webhook-id, webhook-timestamp or webhook-signature is missing.'
  // What is signed must be readable in one way only.
  if (id.includes('.')) return 'webhook-id has a dot.'
  if (!/^(0|[1-9]\d{0,11})$/.test(timestamp)) return 'webhook-timestamp is not a number of seconds.'
  if (Math.abs(now - Number(timestamp)) > TOLERANCE) return 'webhook-timestamp is more than five minutes off.'
  const wanted = Buffer.from(sign(secret, id, timestamp, body))
  // There are several while a secret is being replaced. All are compared, each in the same time.
  let good = false
  for (const signature of signatures.split(' ')) {
    const given = Buffer.from(signature)
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) good = true
  }
  return good ? '' : 'webhook-signature is wrong.'
}

// Returns the signature that the service makes with a secret of newSecret().
function sign(secret, id, timestamp, body) {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return 'v1,' + createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
}

module.exports = { distrust, sign }
