// A Pipedream source that emits an event for each delivery of the Forms Campaign Service. See ../README.md#pipedream.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export default {
  key: 'formsvc-new-event',
  name: 'Forms Campaign Service: New Event',
  description: 'Emits an event for each response, status change or signature.',
  version: '0.0.1',
  type: 'source',
  dedupe: 'unique',
  props: {
    http: { type: '$.interface.http', customResponse: true },
    db: '$.service.db',
    baseUrl: { type: 'string', label: 'Address of the service', description: 'Such as https://forms.example.com' },
    apiKey: { type: 'string', label: 'API key', secret: true },
    events: {
      type: 'string[]',
      label: 'Events',
      options: ['response.created', 'response.updated', 'response.status_changed', 'response.completed',
        'signature.completed', 'file.uploaded'],
      default: ['response.created'],
    },
    campaignUuid: { type: 'string', label: 'UUID of a campaign', optional: true },
  },
  hooks: {
    // Shows what events look like.
    async deploy() {
      const query = new URLSearchParams({ order: 'desc', limit: '10' })
      for (const event of this.events) query.append('event', event)
      if (this.campaignUuid) query.set('campaignUuid', this.campaignUuid)
      const { items } = await this.call('GET', `/v1/events?${query}`)
      for (const item of items.reverse()) this.emit(item)
    },
    // Takes over a webhook that an earlier attempt left at this address, which is ours alone.
    async activate() {
      const secret = `whsec_${randomBytes(32).toString('base64')}`
      const webhook = { url: this.http.endpoint, events: this.events, campaignUuid: this.campaignUuid || null, secret }
      const { items } = await this.call('GET', '/v1/webhooks')
      const left = items.find(({ url }) => url === this.http.endpoint)
      const { uuid } = left
        ? await this.call('PUT', `/v1/webhooks/${left.uuid}`, { ...webhook, disabled: false })
        : await this.call('POST', '/v1/webhooks', webhook)
      this.db.set('webhook', { uuid, secret })
    },
    // A source can always be switched off; a webhook that is left can be deleted in the console.
    async deactivate() {
      const webhook = this.db.get('webhook')
      if (!webhook) return
      await this.call('DELETE', `/v1/webhooks/${webhook.uuid}`).catch(error => console.error(error.message))
      this.db.set('webhook', null)
    },
  },
  methods: {
    async call(method, path, body) {
      const answer = await fetch(this.baseUrl.replace(/\/+$/, '') + path, {
        method,
        headers: { authorization: `Bearer ${this.apiKey}`, ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body),
      })
      if (answer.status === 204) return null
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return JSON.parse(text)
    },
    isSigned(headers, body) {
      const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
      const secret = this.db.get('webhook')?.secret
      if (!secret || !(Math.abs(Date.now() / 1000 - timestamp) < 300)) return false
      const mac = createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`${id}.${timestamp}.${body}`)
      const wanted = Buffer.from(`v1,${mac.digest('base64')}`)
      return signatures.split(' ').map(s => Buffer.from(s)).some(s => s.length === wanted.length && timingSafeEqual(s, wanted))
    },
    emit(item) {
      this.$emit(item, { id: item.id, ts: Date.parse(item.timestamp), summary: `${item.event} ${item.data.response.reference}` })
    },
  },
  async run(event) {
    const signed = this.isSigned(event.headers, event.bodyRaw)
    if (signed) this.emit(JSON.parse(event.bodyRaw))
    this.http.respond({ status: signed ? 200 : 401, body: signed ? '' : 'The signature does not fit.' })
  },
}
