import { createHmac, timingSafeEqual } from 'node:crypto'

// How far the clock of the sender and ours may be apart. What is older could be a recorded delivery that is played again.
const toleranceSeconds = 5 * 60

type Headers = Record<string, string | string[] | undefined>

// Returns why a delivery is refused, or undefined when it was signed with secret, by the rules of Standard Webhooks, less
// than five minutes ago.
export function whyRefused(
  secret: unknown,
  headers: Headers,
  body: Buffer | undefined,
  now = Date.now(),
): string | undefined {
  if (typeof secret !== 'string' || secret === '') {
    return 'this workflow knows no secret for its webhook; switch it off and on again'
  }
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature']
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return 'webhook-id, webhook-timestamp or webhook-signature is missing'
  }
  // What is signed is id.timestamp.body; a dot in the identifier would let it be read in two ways.
  if (id === '' || id.includes('.') || !/^\d{1,12}$/.test(timestamp)) {
    return 'webhook-id or webhook-timestamp is malformed'
  }
  if (!body) return 'the body is missing'
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceSeconds) {
    return 'webhook-timestamp is more than five minutes off'
  }
  const wanted = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body)
  const signature = Buffer.from(`v1,${wanted.digest('base64')}`)
  // While a secret is being replaced there are several signatures, with a space between two.
  const fits = signatures.split(' ').some((given) => same(Buffer.from(given), signature))
  return fits ? undefined : 'webhook-signature does not fit'
}

// After "whsec_" comes the key in base64, otherwise the secret's own bytes are the key.
function keyOf(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  if (!encoded) return Buffer.from(secret)
  const key = Buffer.from(encoded, 'base64')
  return key.toString('base64') === encoded && key.some((byte) => byte !== 0)
    ? key
    : Buffer.from(secret)
}

function same(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
