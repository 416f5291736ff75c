'use strict'

const { call } = require('../lib/http')
const { sampleResponse } = require('../lib/events')
const { campaignField } = require('../lib/fields')
const { withId } = require('../lib/output')

// Newest first; Zapier takes the first unless the user asks for more.
async function perform(z, bundle) {
  const { campaign, reference, email } = bundle.inputData
  if (!reference && !email) throw new z.errors.Error('Fill in Reference or Submitter Email.', 'invalid_input')
  const path = `/v1/campaigns/${encodeURIComponent(campaign)}/responses`
  const { data } = await call(z, bundle, 'GET', path, { query: { reference, email, limit: 20 } })
  return data.items.map(withId)
}

module.exports = {
  key: 'find_response',
  noun: 'Response',
  display: { label: 'Find Response', description: 'Finds a response of a campaign by its reference or its submitter.' },
  operation: {
    perform,
    inputFields: [
      campaignField({ required: true }),
      { key: 'reference', label: 'Reference', type: 'string', helpText: 'As the service shows it, such as 7XK4-MQ2PWD.' },
      { key: 'email', label: 'Submitter Email', type: 'string', helpText: 'Exactly this address. The newest comes first.' },
    ],
    sample: withId(sampleResponse),
  },
}
