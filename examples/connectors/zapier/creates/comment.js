'use strict'

const { call } = require('../lib/http')
const { needed, requiredCampaignField, responseField } = require('../lib/fields')
const { idempotencyKey, onceField, repeating } = require('../lib/repeat')
const { withId } = require('../lib/output')

async function perform(z, bundle) {
  const [campaign, response, comment] = ['campaign', 'response', 'comment'].map(key => needed(z, bundle, key))
  const headers = { 'Idempotency-Key': idempotencyKey(bundle, 'add_comment', campaign, response) }
  const path = `/v1/campaigns/${encodeURIComponent(campaign)}/responses/${encodeURIComponent(response)}/comments`
  const { data } = await repeating(() => call(z, bundle, 'POST', path, { body: { body: comment }, headers }))
  return withId(data)
}

module.exports = {
  key: 'add_comment',
  noun: 'Comment',
  display: { label: 'Add Comment', description: 'Adds a comment to a response.' },
  operation: {
    perform,
    inputFields: [
      requiredCampaignField(),
      responseField,
      { key: 'comment', label: 'Comment', type: 'text', required: true },
      onceField,
    ],
    sample: withId({
      uuid: '019aa5f0-6c00-7000-8000-000000000006',
      body: 'Checked, all is there.',
      author: 'Zapier',
      createdAt: '2026-11-21T08:30:20.123Z',
    }),
  },
}
